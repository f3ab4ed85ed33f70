"""mini-bert lab: compare training configs under the same budget."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from ...report.lab_page import lab_page
from ...report.page import write_page
from ...training.loop import Listener
from ...lab.experiment import Experiment
from ...lab.runs import perform, summary
from ..output import Output, table
from ..training_display import TrainingDisplay
from .pretrain import Data


def lab_command(experiment: Annotated[Path, typer.Argument(metavar="FILE", help="The experiment, in YAML.")],
                data: Data,
                out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="A directory for the runs.")],
                *, output: Output) -> None:
    """Train several configs with several seeds, and compare their held-out losses in a table and a page with curves.

    Finished runs are not repeated.

    Example: mini-bert lab recipes.yaml --data corpus.mb --out lab
    """
    plan = Experiment.read(experiment)
    display = TrainingDisplay(quiet=True)

    def announce(name: str, number: int) -> Listener:
        if not output.silent:
            display.console.print(f"{name}, seed {number}", markup=False)
        return TrainingDisplay(output.silent)

    curves = perform(plan, data, out, announce)
    rows = table("run", "held-out loss", "lowest", "highest", "seeds", "tokens", "seconds",
                 right=("held-out loss", "lowest", "highest", "seeds", "tokens", "seconds"))
    found = summary(curves)
    for row in found:
        rows.add_row(row["name"], f"{row['loss']:.4f}", f"{row['lowest']:.4f}", f"{row['highest']:.4f}",
                     str(row["seeds"]), f"{row['tokens']:,}", f"{row['seconds']:,.0f}")
    page = write_page(out / "lab.html", lab_page(f"Experiment: {experiment.stem}", curves, found))
    output.result(
        {"summary": found, "curves": [asdict(curve) for curve in curves], "page": str(page)}, rows, "",
        f"Curves over tokens and over time: {escape(str(page))}")
