"""mini-bert gradcheck: every gradient against finite differences."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from math import isfinite
from typing import Annotated

import typer
from rich.markup import escape

from ...checks.check_all import check_all, subjects
from ...checks.formulas import FormulaResult
from ...core.gradcheck import TOLERANCE, CheckResult
from ..output import Output, SeedOption, table, verdict

Names = Annotated[list[str] | None, typer.Argument(
    metavar="OP", help=f"What to check: {', '.join(subjects())}; default: everything.",
    show_default=False)]
_SHOWN = 8                    # sentences about wrong formulas
Verbose = Annotated[bool, typer.Option("--all", "-a", help="One row per gradient or formula instead of one per case.")]


def gradcheck_command(ops: Names = None, every: Verbose = False, seed: SeedOption = 0, *, output: Output) -> None:
    """Check backward passes against finite differences, in float64 and with random cotangents.

    Operations are checked element by element. Whole models, with padding and dropout, are checked along one random
    direction per parameter. The formulas that the explorer shows are evaluated and compared with the numbers of the
    model. Exits with 1 if a relative error is above the tolerance.

    Example: mini-bert gradcheck softmax attention --all
    """
    results = list(check_all(ops or [], seed))
    rows = table("subject", "case", "checks", "worst", "relative error", "", right=("checks", "relative error"))
    for (subject, case), group in groupby(results, key=lambda result: (result.subject, result.case)):
        members = list(group)
        for shown in members if every else [_worst(members)]:
            ok = shown.passed if every else all(member.passed for member in members)
            rows.add_row(subject, case, str(1 if every else len(members)), shown.gradient,
                         f"{shown.error:.1e}", verdict(ok))
    output.say(rows)
    failed = [result for result in results if not result.passed]
    formulas = [result for result in results if isinstance(result, FormulaResult)]
    gradients = [result for result in results if not isinstance(result, FormulaResult)]
    worst = _worst(gradients)
    data = [{**asdict(result), "passed": result.passed} for result in results]
    summary = (f"{_passed(gradients)} gradients agree; worst relative error {worst.error:.1e} "
               f"(tolerance {TOLERANCE:.0e}).")
    if formulas:
        summary += f" {_passed(formulas)} formulas give the numbers of their steps."
    wrong = [escape(formula.sentence) for formula in formulas if not formula.passed]
    output.result({"passed": not failed, "tolerance": TOLERANCE, "checked": len(results), "failed": len(failed),
                   "formulas": len(formulas), "worst": data[results.index(worst)], "results": data},
                  *wrong[:_SHOWN], *([f"{len(wrong) - _SHOWN:,} more formulas are wrong."] if wrong[_SHOWN:] else []),
                  summary if not failed else f"[bold red]{summary}[/bold red]")
    raise typer.Exit(1 if failed else 0)


def _passed(results: Sequence[CheckResult]) -> str:
    return f"{sum(result.passed for result in results)} of {len(results)}"


def _worst(results: list[CheckResult]) -> CheckResult:
    return max(results, key=lambda result: result.error if isfinite(result.error) else float("inf"))
