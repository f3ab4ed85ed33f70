"""mini-bert fit: make a model of your own text in one command."""

from pathlib import Path
from signal import SIGINT
from typing import Annotated

import typer
from rich.markup import escape
from rich.text import Text

from ...fit import FitResult, Stopped, fit
from ..output import Output, SeedOption, table
from ..table_options import EncodingOption, TextColumnOption, one_column
from ..training_display import TrainingDisplay
from .pretrain import Config, Set
from .tokenizer import Files, Include, StrictFolder


def fit_command(files: Files,
                out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The directory to write to.")],
                budget: Annotated[str, typer.Option("--budget", metavar="TIME", help="Training time, such as 30m "
                                                    "or 8h.")] = "30m",
                start: Annotated[str | None, typer.Option("--from", metavar="NAME|DIR", help="Start from this model, "
                                                          "such as mini, and add the text's words to it.")] = None,
                config: Config = "mini", changes: Set = None,
                vocab_size: Annotated[int | None, typer.Option(min=10, help="Size of a new vocabulary; default: "
                                                               "chosen by the amount of text.")] = None,
                new_words: Annotated[int | None, typer.Option(min=0, help="With --from: maximum number of words to "
                                                              "add; default: 1,000.")] = None,
                cased: Annotated[bool, typer.Option("--cased/--uncased", help="Keep case and accents.")] = False,
                include: Include = None, text_column: TextColumnOption = None, encoding: EncodingOption = None,
                strict: StrictFolder = False, seed: SeedOption = 0, *, output: Output) -> None:
    """Train a model on your own text: vocabulary, corpus, training within a time budget, evaluation, and a report.

    Text, HTML and tables are read; files in a folder that cannot be read are skipped and listed. Ctrl-C saves; the same
    command continues, even with another --budget. Pass DIR as --model to other commands; the report is DIR/report.html.

    Example: mini-bert fit letters/ --out letters.model --budget 10m

    Example: mini-bert fit letters/ --out grown.model --budget 10m --from mini
    """
    display = TrainingDisplay(output.silent)
    try:
        with display:
            fitted = fit(files, out, budget=budget, start=start, config=config, changes=changes or (),
                         vocab_size=vocab_size, new_words=new_words, cased=cased, seed=seed, include=include or (),
                         text_column=one_column(text_column), encoding=encoding, strict=strict, listener=display)
    except KeyboardInterrupt:                     # before or after training, which handles it itself
        fitted = Stopped(SIGINT, saved=True)
    if isinstance(fitted, Stopped):
        done = "Stopped and saved" if fitted.saved else "Stopped; the last good checkpoint is kept"
        output.result({"out": str(out), "interrupted": True},
                      f"{done}: {escape(str(out))}. Run the same command to continue.")
        raise typer.Exit(128 + fitted.signal)
    output.result({"model": str(fitted.model), "report": str(fitted.report), **fitted.to_dict()}, *_shown(fitted))


def _shown(fitted: FitResult) -> list[object]:
    shown: list[object] = []
    if fitted.heldout is not None:
        figures = table("on held-out text", "loss", "accuracy", right=("loss", "accuracy"))
        figures.add_row("[bold]the model[/bold]", f"[bold]{fitted.heldout.loss:.3f}[/bold]",
                        f"{fitted.heldout.accuracy:.1%}")
        if fitted.before is not None:
            figures.add_row("before training", f"{fitted.before.loss:.3f}", f"{fitted.before.accuracy:.1%}")
        for name, loss in fitted.heldout.baselines.items():
            figures.add_row(f"baseline: {name}", f"{loss:.3f}", "")
        shown += ["", figures]
    shown += ["", escape(fitted.verdict)]
    if fitted.examples:
        masks = table("held-out sentence", "original", "predictions")
        for example in fitted.examples:
            masks.add_row(Text(example.text), Text(example.truth, "bold"),
                          Text(", ".join(candidate.token for candidate in example.candidates)))
        shown += ["", masks]
    return [*shown, "", f"The model: {escape(str(fitted.model))}", f"The report: {escape(str(fitted.report))}"]
