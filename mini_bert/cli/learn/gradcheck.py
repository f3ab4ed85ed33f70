"""mini-bert gradcheck: every gradient against finite differences."""

from dataclasses import asdict
from itertools import groupby
from math import isfinite
from typing import Annotated

import typer

from ...checks.check_all import check_all, subjects
from ...core.gradcheck import TOLERANCE, CheckResult
from ..output import JsonOption, Output, QuietOption, SeedOption, table, verdict

Names = Annotated[list[str] | None, typer.Argument(
    metavar="OP", help=f"What to check: {', '.join(subjects())}; default: everything.",
    show_default=False)]
Verbose = Annotated[bool, typer.Option("--all", "-a", help="One row per gradient instead of one per case.")]


def gradcheck_command(ops: Names = None, every: Verbose = False, seed: SeedOption = 0,
                      as_json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Check backward passes against finite differences, in float64 and with random cotangents.

    Operations are checked element by element. Whole models, with padding and dropout, are checked along one random
    direction per parameter. Exits with 1 if a relative error is above the tolerance.

    Example: mini-bert gradcheck softmax attention --all
    """
    output = Output(as_json, quiet)
    results = list(check_all(ops or [], seed))
    rows = table("subject", "case", "gradients", "worst", "relative error", "",
                 right=("gradients", "relative error"))
    for (subject, case), group in groupby(results, key=lambda result: (result.subject, result.case)):
        members = list(group)
        for shown in members if every else [_worst(members)]:
            ok = shown.passed if every else all(member.passed for member in members)
            rows.add_row(subject, case, str(1 if every else len(members)), shown.gradient,
                         f"{shown.error:.1e}", verdict(ok))
    output.say(rows)
    worst, failed = _worst(results), [result for result in results if not result.passed]
    # JSON has no NaN: an error that is not finite becomes null
    data = [{**asdict(result), "error": result.error if isfinite(result.error) else None,
             "passed": result.passed} for result in results]
    summary = (f"{len(results) - len(failed)} of {len(results)} gradients agree; worst relative error "
               f"{worst.error:.1e} (tolerance {TOLERANCE:.0e}).")
    output.result({"passed": not failed, "tolerance": TOLERANCE, "checked": len(results), "failed": len(failed),
                   "worst": data[results.index(worst)], "results": data},
                  summary if not failed else f"[bold red]{summary}[/bold red]")
    raise typer.Exit(1 if failed else 0)


def _worst(results: list[CheckResult]) -> CheckResult:
    return max(results, key=lambda result: result.error if isfinite(result.error) else float("inf"))
