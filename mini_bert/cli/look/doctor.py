"""mini-bert doctor: is a run healthy, and what ails it if not?"""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from ...analysis.doctor.doctor import SICK, Diagnosis, examine
from ...analysis.doctor.symptoms import Finding
from ..output import JsonOption, Output, QuietOption, table

_COLOURS = {"healthy": "green", "sick": "red", "unclear": "yellow"}


def doctor_command(run: Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run or of a fit.")],
                   corpus: Annotated[Path | None, typer.Option(
                       "--corpus", metavar="DIR", help="Where its prepared corpus is now, if it was moved.")] = None,
                   as_json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Say in plain words whether a run is healthy, going or finished, and what to try if it is not.

    Its curve is held against guessing evenly, by frequency and by the token before, and against that of the shipped
    model that is like it; its gradients, its newest checkpoint and its text are looked at too. Exits with 1 if it is
    not healthy, with 0 if it is or if nothing can be said yet.

    Example: mini-bert doctor runs/first
    """
    found = examine(run, corpus)
    Output(as_json, quiet).result(found.to_dict(), *_shown(found, quiet))
    if found.verdict == SICK:
        raise typer.Exit(1)


def _shown(found: Diagnosis, quiet: bool) -> list[object]:
    shown: list[object] = [f"[bold {_COLOURS[found.verdict]}]{escape(found.says)}[/]"]
    for finding in found.findings:
        shown += ["", *_told(finding)]
    if quiet:
        return shown
    levels = table("loss", "", right=("loss",))
    for value, words in ((found.levels.uniform, "guessing evenly, ln V"), (found.levels.unigram, "by frequency"),
                         (found.levels.bigram, "by the token before"), (found.loss, "[bold]this run[/bold]"),
                         (found.reference.reference if found.reference else None, "the reference at as many tokens")):
        if value is not None:
            levels.add_row(f"{value:.3f}", words)
    shown += ["", levels, ""]
    shown.append("Measured: " + ", ".join(f"{escape(name.replace('_', ' '))} {value:.3g}"
                                          for name, value in found.measured.items()))
    for name, reason in found.left_out.items():
        shown.append(f"Not examined: {escape(name)}, because {escape(reason)}")
    return [*shown, *(f"Note: {escape(note)}" for note in found.notes)]


def _told(finding: Finding) -> list[str]:
    evidence = ", ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in finding.evidence.items())
    return [f"[bold]{escape(finding.name)}[/bold] ({finding.sure.value}): {escape(finding.says)}",
            f"  evidence: {escape(evidence)}", f"  try: {escape(finding.advice)}"]
