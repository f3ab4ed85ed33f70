"""mini-bert lab: compare models and ways to train them under the same budget, and measure them with one ruler."""

import json
import shlex
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from ...errors import ConfigError
from ...evaluation.result import finite
from ...files import write_files
from ...lab.comparison import Comparison, compare
from ...lab.experiment import Experiment
from ...lab.figures import EXPLAINED, ZERO_SHOT, amount, tunings
from ...lab.ruler import Ruler
from ...lab.runs import summary
from ...parallel.processes import world
from ...report.lab_page import lab_page
from ...report.page import write_page
from ...training.loop import Listener
from ..output import FreshOption, Output, table
from ..training_display import TrainingDisplay


def lab_command(experiment: Annotated[Path | None, typer.Argument(
                    metavar="FILE", help="The experiment, in YAML; not needed to measure models that exist.")] = None,
                data: Annotated[Path | None, typer.Option(
                    "--data", "-d", metavar="DIR", help="A corpus from `mini-bert data prepare`.")] = None,
                out: Annotated[Path | None, typer.Option(
                    "--out", "-o", metavar="DIR", help="A directory for the runs, lab.html and lab.json.")] = None,
                ruler: Annotated[Path | None, typer.Option(
                    "--ruler", metavar="DIR", help="Measure every run with the data in this folder: blimp/, agreement/ "
                                                   "and sst2/.")] = None,
                model: Annotated[list[str] | None, typer.Option(
                    "--model", "-m", metavar="NAME|DIR", help="Also measure this model; may be repeated.")] = None,
                finetuning: Annotated[bool, typer.Option(
                    "--finetuning/--no-finetuning", help="Also measure fine-tuning, which takes most of the "
                                                         "time.")] = True,
                jobs: Annotated[int, typer.Option(
                    "--jobs", "-j", min=1, help="Runs at a time, each a process with one thread if there are several; "
                                                "results do not depend on it, unless the budget is a time.")] = 1,
                fresh: FreshOption = False, *, output: Output) -> None:
    """Train models under one budget with several seeds, and compare them in a table and a page with curves.

    Without --ruler they are compared by held-out loss. With it, every run and every --model has a row: held-out losses
    measured in the same way, grammar (BLiMP, verbs with one attractor) and fine-tuning on few examples, compared with
    n-grams, random weights and a bag of words. Finished runs are not repeated.

    Example: mini-bert lab lab.yaml --data corpus.mb --out lab --jobs 2
    """
    if jobs > 1 and world().size > 1:
        raise ConfigError("Under mpirun each process does a share of the runs; leave out --jobs.")
    _require_sense(experiment, data, out, ruler, model, finetuning, jobs, fresh)
    plan = None if experiment is None else Experiment.read(experiment)
    display = TrainingDisplay(quiet=output.silent)

    def announce(name: str, number: int) -> Listener:
        display.said(f"{name}, seed {number}")
        return TrainingDisplay(output.silent)

    measured = None if ruler is None else Ruler(ruler, data, finetuning, fresh=fresh)
    found = compare(plan, out, data=data, ruler=measured, models=model or [], jobs=jobs, announce=announce,
                    say=display.said)
    title = "A comparison of models" if experiment is None else f"{experiment.stem}: an experiment"
    content: dict[str, Any] = {**found.to_dict(), "summary": summary(found.curves)}
    last: list[str] = []
    if out is not None:
        options = {"--data": data, "--out": out, "--ruler": ruler}
        command = shlex.join(["mini-bert", "lab", *([str(experiment)] if experiment is not None else []),
                              *(str(part) for option, value in options.items() if value for part in (option, value)),
                              *(part for name in model or [] for part in ("--model", name))])
        page = out / "lab.html"
        content["page"] = str(page)
        if world().rank == 0:
            write_page(page, lab_page(title, found, command, datetime.now(), out))
            write_files(out, {"lab.json": json.dumps(finite(content), indent=1).encode()})
        last.append(f"Curves over tokens and over time: {escape(str(page))}")
    failed = [f"{escape(name)} failed: {escape(reason)}" for name, reason in found.failures.items()]
    shown = [_losses(found)] if ruler is None else _measured(found)
    output.result(content, *shown, "", *failed, *last)
    if found.failures:
        raise typer.Exit(1)


def _require_sense(experiment: Path | None, data: Path | None, out: Path | None, ruler: Path | None,
                   model: list[str] | None, finetuning: bool, jobs: int, fresh: bool) -> None:
    """Refuse what cannot be done, and options that would be ignored."""
    if experiment is None and not model:
        raise ConfigError("There is nothing to compare; name an experiment's FILE, or models with --model.")
    if experiment is not None and (data is None or out is None):
        raise ConfigError("An experiment needs --data and --out: the corpus, and a directory for its runs.")
    if ruler is None:
        for option, given in (("--model", bool(model)), ("--no-finetuning", not finetuning), ("--fresh", fresh)):
            if given:
                raise ConfigError(f"{option} needs the ruler; name the folder of its data with --ruler.")


def _losses(found: Comparison) -> Table:
    numbers = ("held-out loss", "lowest", "highest", "seeds", "tokens", "seconds")
    rows = table("run", *numbers, right=numbers)
    for row in summary(found.curves):
        rows.add_row(escape(row["name"]), f"{row['loss']:.4f}", f"{row['lowest']:.4f}", f"{row['highest']:.4f}",
                     str(row["seeds"]), f"{row['tokens']:,}", f"{row['seconds']:,.0f}")
    return rows


def _measured(found: Comparison) -> list[Any]:
    """The row of every model, and of baselines that are not models; fine-tuning has a separate table."""
    trained = any(row.trained for row in found.rows)
    cost = ("params", *(("tokens", "seconds") if trained else ()))
    numbers = (*cost, *(figure.heading for figure in ZERO_SHOT))
    rows = table("run", *numbers, right=numbers)
    for row in found.rows:
        spent = [f"{sum(values) / len(values):,.0f}" if key == "seconds" and values else
                 amount(sum(values) / len(values)) if values else "–"
                 for key in cost[1:] for values in [row.values(key)]]
        rows.add_row(escape(row.name), amount(row.parameters), *spent,
                     *(figure.shown(row.values(figure.key)) for figure in ZERO_SHOT))
    for name, scores in found.baselines.items():
        if any(figure.of(scores) for figure in ZERO_SHOT):
            rows.add_row(f"[dim]{escape(name)}[/dim]", *("" for _ in cost), *(f.shown(f.of(scores)) for f in ZERO_SHOT))
    shown: list[Any] = [rows, ""]
    if columns := tunings(found):
        headings = [heading for figure in columns for heading in (figure.heading, "random weights")]
        tuned = Table(title="Accuracy on SST-2 after fine-tuning, and from random weights", title_justify="left",
                      box=None, pad_edge=False, header_style="bold")
        for number, heading in enumerate(["run", *headings]):
            tuned.add_column(heading, justify="right" if number else "left")
        for row in found.rows:
            tuned.add_row(escape(row.name), *(figure.shown(values) for figure in columns
                                             for values in (row.values(figure.key), figure.of(row.random))))
        for name, scores in found.baselines.items():
            if any(figure.of(scores) for figure in columns):
                tuned.add_row(f"[dim]{escape(name)}[/dim]",
                              *(cell for figure in columns for cell in (figure.shown(figure.of(scores)), "")))
        shown += [tuned, ""]
    return [*shown, f"[dim]{escape(EXPLAINED)}[/dim]"]
