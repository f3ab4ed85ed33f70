"""mini-bert report: one page about a training run."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from ...analysis.doctor.run_record import RunRecord
from ...files import PAGES, output_file
from ...report.page import write_page
from ...report.run_page import run_page
from ..output import Output


def report_command(run: Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run or of a fit.")],
                   out: Annotated[Path | None, typer.Option(
                       "--out", "-o", metavar="FILE", help="The page to write; default: RUN/report.html.")] = None,
                   corpus: Annotated[Path | None, typer.Option(
                       metavar="DIR", help="The run's prepared corpus, if it has been moved.")] = None,
                   *, output: Output) -> None:
    """Write an HTML page about a run: the doctor's verdict, curves, gradients by layer, filled masks, settings.

    The page is self-contained: it opens without a network and can be sent by e-mail.

    Example: mini-bert report runs/mine
    """
    if out is not None:
        output_file(out, PAGES)
    record = RunRecord.read(run, corpus)
    path = write_page(out or record.directory / "report.html", run_page(record))
    output.result({"run": str(record.directory), "page": str(path)}, escape(str(path)))
