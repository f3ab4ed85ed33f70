"""mini-bert doctor: diagnose a training run."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from ...analysis.doctor.doctor import SICK, Diagnosis, examine
from ...analysis.doctor.symptoms import Finding
from ..output import Output, table

_COLOURS = {"healthy": "green", "sick": "red", "unclear": "yellow"}


def doctor_command(run: Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run or of a fit.")],
                   corpus: Annotated[Path | None, typer.Option(
                       "--corpus", metavar="DIR", help="The run's prepared corpus, if it has been moved.")] = None,
                   *, output: Output) -> None:
    """Say in plain words whether a run, finished or not, is healthy, and what to try if it is not.

    The doctor compares the loss curve with the uniform, unigram and bigram losses and with the shipped model's curve,
    and examines gradients, the newest checkpoint and the corpus. Exits with 1 if the run is not healthy, with 0 if it
    is healthy or too short to tell.

    Example: mini-bert doctor runs/mine
    """
    found = examine(run, corpus)
    output.result(found.to_dict(), *_shown(found, output.quiet))
    if found.verdict == SICK:
        raise typer.Exit(1)


def _shown(found: Diagnosis, quiet: bool) -> list[object]:
    shown: list[object] = [f"[bold {_COLOURS[found.verdict]}]{escape(found.says)}[/]"]
    for finding in found.findings:
        shown += ["", *_finding(finding)]
    if quiet:
        return shown
    losses = table("loss", "", right=("loss",))
    levels = [(value, "uniform: ln V" if name == "uniform" else name)
              for name, value in found.baselines.levels().items()]
    for value, name in (*levels, (found.loss, "[bold]this run[/bold]"),
                        (found.reference.reference if found.reference else None,
                         "reference after the same number of tokens")):
        if value is not None:
            losses.add_row(f"{value:.3f}", name)
    shown += ["", losses, ""]
    shown.append("Measured: " + ", ".join(f"{escape(name.replace('_', ' '))} {value:.3g}"
                                          for name, value in found.measured.items()))
    for name, reason in found.left_out.items():
        shown.append(f"Not examined: {escape(name)}, because {escape(reason)}")
    return [*shown, *(f"Note: {escape(note)}" for note in found.notes)]


def _finding(finding: Finding) -> list[str]:
    evidence = ", ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in finding.evidence.items())
    return [f"[bold]{escape(finding.name)}[/bold] ({finding.sure.value}): {escape(finding.says)}",
            f"  evidence: {escape(evidence)}", f"  try: {escape(finding.advice)}"]
