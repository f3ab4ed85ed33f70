"""mini-bert timeline: what a model knows at each snapshot of its run."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from ...analysis.doctor.run_record import RunRecord
from ...analysis.timeline.data import FULL, QUICK
from ...analysis.timeline.entry import SHARE, chosen_entries
from ...analysis.timeline.record import Timeline
from ...analysis.timeline.timeline import measure_timeline
from ...errors import InputError
from ..output import FreshOption, Output, SeedOption, ThreadsOption, progress_bar, table


def timeline_command(run: Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run, finished or "
                                                         "not.")],
                     tasks: Annotated[Path | None, typer.Option(
                         "--tasks", metavar="DIR", help="A folder of task data: a treebank, blimp/, agreement/. "
                                                        "Without it, only the loss and dead units.")] = None,
                     data: Annotated[Path | None, typer.Option("--data", "-d", metavar="DIR",
                                                               help="The run's corpus, if it has been moved.")] = None,
                     quick: Annotated[bool, typer.Option("--quick", help="Measure on small samples.")] = False,
                     only: Annotated[str | None, typer.Option("--only", metavar="NAME,...",
                                                              help="Only these figures, such as loss,blimp.")] = None,
                     out: Annotated[Path | None, typer.Option("--out", "-o", metavar="DIR", help="Where to write "
                                                              "timeline.json. Default: RUN.")] = None,
                     threads: ThreadsOption = 0, fresh: FreshOption = False, seed: SeedOption = 0,
                     *, output: Output) -> None:
    """Measure every snapshot of a run: when does the model learn what?

    The figures are held-out loss, minimal pairs overall and by phenomenon, agreement by the number of attractors, parts
    of speech and trees by probes, attention heads that follow relations, and dead units. A run keeps snapshots with
    training.snapshots=20; without snapshots, its checkpoints are measured. Results are cached: an interrupted
    measurement continues, and a repeated one is instant.

    Example: mini-bert timeline runs/mine --tasks eval/ --quick

    Example: mini-bert timeline runs/mine --tasks eval/ --only blimp,agreement --out figures
    """
    names = None if only is None else [name.strip() for name in only.split(",") if name.strip()]
    if names == []:
        raise InputError(f"--only is empty; choose some of {', '.join(chosen_entries())}.")
    folder = RunRecord.read(run).directory if out is None else out
    if out is not None and out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; --out names a directory.")
    with progress_bar(quiet=output.silent) as bar:
        task = bar.add_task("timeline", total=None)
        found = measure_timeline(run, tasks=tasks, data=data, sizes=QUICK if quick else FULL, only=names, seed=seed,
                                 threads=threads, fresh=fresh,
                                 report=lambda what, done, total: bar.update(task, description=what, completed=done,
                                                                             total=total))
    file = found.save(folder)
    output.result({**found.to_dict(), "file": str(file)}, _table(found), "", *map(escape, found.notes),
                  f"{escape(str(file))}; draw it with: mini-bert plot timeline {escape(str(file))}")


def _table(found: Timeline) -> Table:
    """A row for each snapshot, with the columns that the panels name."""
    columns = [(heading, panel.unit, line.values) for panel in found.panels for heading, name in panel.columns.items()
               for line in panel.lines if line.name == name]
    made = table("step", "tokens", *(heading for heading, _, _ in columns),
                 right=("step", "tokens", *(heading for heading, _, _ in columns)))
    for row, (step, tokens) in enumerate(zip(found.steps, found.tokens, strict=True)):
        made.add_row(f"{step:,}", f"{tokens:,}", *(_shown(values[row], unit) for _, unit, values in columns))
    return made


def _shown(value: float | None, unit: str) -> str:
    return "–" if value is None else f"{100 * value:.1f}" if unit == SHARE else f"{value:.3f}"
