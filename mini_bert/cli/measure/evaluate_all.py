"""Everything that mini-bert evaluate can measure: progress on the way, a table, JSON, and a page."""

from pathlib import Path
from typing import Any, NamedTuple

import typer
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from ...errors import InputError
from ...evaluation.suite.context import FULL, QUICK
from ...evaluation.suite.rows import shown
from ...evaluation.suite.suite import LEVELS, Evaluation, Listener, chosen_parts, comprehensive_evaluation
from ...report.evaluation_page import evaluation_page
from ...report.page import write_page
from ..output import Output, table
from ..progress import progress_bar
from ..use.inference import opened


class Asked(NamedTuple):
    """What the command line says."""

    model: str
    data: list[str]
    tasks: Path | None
    train: Path | None
    only: str | None
    quick: bool
    max_samples: int | None
    length: int | None
    threads: int
    seed: int
    fresh: bool
    report: Path


def evaluate_everything(asked: Asked, output: Output) -> None:
    """Run it, show it, and write the page."""
    if asked.report.is_dir() or not asked.report.absolute().parent.is_dir():
        raise InputError(f"The page cannot be written to {asked.report}: name a file in a directory that is there.")
    if "-" in asked.data:
        raise InputError("The text is read several times, so --data cannot be standard input; name files.")
    only = None if asked.only is None else [name.strip() for name in asked.only.split(",") if name.strip()]
    if only is not None and not only:
        raise InputError(f"--only names no part; choose some of {', '.join(chosen_parts(None))}.")
    sizes = (QUICK if asked.quick else FULL).capped(asked.max_samples)
    network, tokenizer = opened(asked.model)
    with progress_bar(quiet=output.quiet or output.as_json) as bar:
        found = comprehensive_evaluation(network, tokenizer, text=asked.data, tasks=asked.tasks, train=asked.train,
                                         sizes=sizes, only=only, length=asked.length, seed=asked.seed,
                                         threads=asked.threads, fresh=asked.fresh, listener=_Shown(bar, output))
    about = {"model": asked.model, "data": asked.data, "tasks": None if asked.tasks is None else str(asked.tasks),
             "train": None if asked.train is None else str(asked.train), "quick": asked.quick,
             "max_samples": asked.max_samples, "seed": asked.seed}
    write_page(asked.report, evaluation_page(f"Evaluation of {asked.model}", about, found))
    left = [f"not measured: {escape(part['name'])}: {escape(part['reason'])}" for part in found.not_measured]
    output.result({**about, **found.to_dict(), "report": str(asked.report)}, *_summary(found), *left, "",
                  f"{found.seconds:.0f} s, {found.peak_mb:,.0f} MB of memory at the most. The page with all "
                  f"figures and plots: {escape(str(asked.report))}")
    if only is not None and found.not_measured:       # what was asked for by name is missing
        raise typer.Exit(1)


class _Shown(Listener):
    """A bar for all parts, one for the part that runs, and a line for each that is done."""

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


def _summary(found: Evaluation) -> list[Any]:
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
