"""The comprehensive evaluation of mini-bert evaluate: progress bars, a table, JSON, and an HTML report."""

import shlex
from datetime import datetime
from pathlib import Path
from typing import Any

import typer
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from ...errors import InputError
from ...evaluation.suite.context import FULL, QUICK
from ...evaluation.suite.rows import shown
from ...evaluation.suite.suite import LEVELS, EvaluationListener, EvaluationReport, chosen_parts
from ...evaluation.suite.suite import comprehensive_evaluation as evaluate
from ...files import PAGES, output_file
from ...report.evaluation_page import evaluation_page
from ...report.page import write_page
from ..output import Output, progress_bar, table
from ..use.inference import opened


def evaluate_everything(model: str, data: list[str], tasks: Path | None, train: Path | None, parts: str | None,
                        quick: bool, max_samples: int | None, report: Path, output: Output, **more: Any) -> None:
    """Run the evaluation with the options of the command, print the summary, and write the report."""
    output_file(report, PAGES)
    if "-" in data:
        raise InputError("The text is read several times, so --data cannot be standard input; name files.")
    only = None if parts is None else [name.strip() for name in parts.split(",") if name.strip()]
    if only is not None and not only:
        raise InputError(f"--only is empty; choose some of {', '.join(chosen_parts(None))}.")
    sizes = (QUICK if quick else FULL).capped(max_samples)
    network, tokenizer = opened(model)
    with progress_bar(quiet=output.silent) as bar:
        found = evaluate(network, tokenizer, text=data, tasks=tasks, train=train, sizes=sizes, only=only,
                         listener=_Shown(bar, output), **more)
    about = {"model": model, "data": data, "tasks": None if tasks is None else str(tasks),
             "train": None if train is None else str(train), "quick": quick, "max_samples": max_samples,
             "seed": more["seed"]}
    options: dict[str, list[Any]] = {
        "--model": [model], "--data": data, "--tasks": [tasks], "--train": [train], "--only": [parts],
        "--max-samples": [max_samples], "--report": [report]}
    command = shlex.join(["mini-bert", "evaluate", *(["--quick"] if quick else []), *(
        str(part) for option, values in options.items() for value in values if value is not None
        for part in (option, value))])
    write_page(report, evaluation_page(f"Evaluation of {model}", about, found, command=command, when=datetime.now()))
    left = [f"not measured: {escape(part['name'])}: {escape(part['reason'])}" for part in found.not_measured]
    output.result({**about, **found.to_dict(), "report": str(report)}, *_summary(found), *left, "",
                  f"{found.seconds:.0f} s, peak memory {found.peak_mb:,.0f} MB. The report with all details and "
                  f"plots: {escape(str(report))}")
    if only is not None and found.not_measured:       # a part that was asked for by name is missing
        raise typer.Exit(1)


class _Shown(EvaluationListener):
    """A progress bar for all parts, one for the current part, and a line for each finished part."""

    def __init__(self, bar: Progress, output: Output):
        self._bar, self._output = bar, output
        self._all = bar.add_task("evaluation", total=1)
        self._now = bar.add_task("", total=1, visible=False)
        self._title = ""

    def begins(self, title: str, number: int, total: int) -> None:
        self._title = title
        self._bar.update(self._all, description=f"evaluation: {title}", completed=number, total=total)
        self._bar.reset(self._now, description="", visible=False)

    def progress(self, what: str, done: int, total: int) -> None:
        self._bar.update(self._now, description=f"  {what}", completed=done, total=total, visible=done < total)

    def ends(self, part: dict[str, Any]) -> None:
        self._output.say(f"[dim]{escape(part['title'])}: {part['seconds']:.1f} s[/dim]")

    def left_out(self, part: dict[str, str]) -> None:
        self._output.say(f"[dim]{escape(part['title'])}: not measured[/dim]")


def _summary(found: EvaluationReport) -> list[Any]:
    made: list[Any] = []
    for level, title in LEVELS.items():
        rows = [row for row in found.summary() if row["level"] == level]
        if rows:
            made += [_level(title, rows), ""]
    return made


def _level(title: str, content: list[dict[str, Any]]) -> Table:
    rows = table("part", "figure", "score", "baselines", "random init", "measured on", right=("score", "random init"),
                 title=f"[bold]{title}[/bold]")
    before = ""
    for row in content:
        unit = row["unit"]
        others = ", ".join(f"{name} {shown(value, unit)}" for name, value in row["baselines"].items())
        rows.add_row(row["part"] if row["part"] != before else "", escape(row["figure"]),
                     f"[bold]{shown(row['value'], unit)}[/bold]", escape(others), shown(row["random_init"], unit),
                     escape(row["sample"]))
        before = row["part"]
    return rows
