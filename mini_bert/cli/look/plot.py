"""mini-bert plot: figures of a model, a run, or the results of another command."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.markup import escape

from ...core.model import MiniBERT
from ...errors import InputError
from ...factory import load
from ...text.tokenizer import Tokenizer
from ..output import Output, SeedOption
from ..use.inference import Model, lines, opened


class FigureRequest(NamedTuple):
    """The arguments of one call."""

    inputs: list[str]
    model: str
    layer: int | None
    head: int | None
    plane: bool
    method: str
    corpus: Path | None
    seed: int

    def opened(self) -> tuple[MiniBERT, Tokenizer]:
        return opened(self.model)

    def only(self, what: str) -> str:
        if len(self.inputs) != 1:
            raise InputError(f"This figure takes {what}, but {len(self.inputs)} inputs are given.")
        return self.inputs[0]

    def file(self, what: str) -> Path:
        path = Path(self.only(what))
        if not path.exists():
            raise InputError(f"There is no file or directory {path}.")
        return path


def _attention(figures: Any, request: FigureRequest) -> Any:
    text = request.only("one text")
    model, tokenizer = request.opened()
    if request.layer is None and request.head is None:
        return figures.attention_overview(model, tokenizer, text)
    return figures.create_attention_heatmap(model, text, request.layer or 0, request.head or 0, tokenizer)


def _spectra(figures: Any, request: FigureRequest) -> Any:
    if request.inputs:
        raise InputError(f"The figure of spectra takes no input, but {request.inputs[0]!r} is given; "
                         "name the model with --model.")
    return figures.weight_spectra(load(request.model), request.layer)


# a figure is drawn by the module report.figures, which needs matplotlib and is imported when one is asked for
FIGURES: dict[str, Callable[[Any, FigureRequest], Any]] = {
    "attention": _attention,
    "gradients": lambda figures, asked: figures.gradient_flow(*asked.opened(), asked.only("one text")),
    "layers": lambda figures, asked: figures.layer_similarity(*asked.opened(), lines(asked.inputs)),
    "projection": lambda figures, asked: figures.sentence_projection(*asked.opened(), lines(asked.inputs), asked.method,
                                                                     asked.seed),
    "landscape": lambda figures, asked: figures.landscape(*asked.opened(), lines(asked.inputs), plane=asked.plane,
                                                          seed=asked.seed),
    "spectra": _spectra,
    "training": lambda figures, asked: figures.training_curves(asked.file("the directory of one run"), asked.corpus),
    "weights": lambda figures, asked: figures.weight_evolution(asked.file("the directory of one run")),
    "timeline": lambda figures, asked: figures.timeline(asked.file("the directory of one run, or its timeline.json")),
    "probe": lambda figures, asked: figures.probe_accuracy(
        asked.file("one file, the output of mini-bert probe --json")),
    "confusion": lambda figures, asked: figures.confusion(
        asked.file("one file with a true and a predicted label per line"))}


def plot_command(kind: Annotated[str, typer.Argument(metavar="FIGURE", help=f"One of {', '.join(FIGURES)}.")],
                 inputs: Annotated[list[str] | None, typer.Argument(
                     metavar="INPUT", help="attention, gradients: a text. layers, projection, landscape: files "
                     "with one text per line. training, weights, timeline: the directory of a run. probe: the "
                     "output of mini-bert probe --json. confusion: a true and a predicted label per line.")] = None,
                 model: Model = "mini",
                 out: Annotated[Path | None, typer.Option("--out", "-o", help="A .png, .svg or .pdf file; default: the "
                                                          "figure's name with .png.")] = None,
                 layer: Annotated[int | None, typer.Option("--layer", min=0, help="For attention and spectra; default: "
                                                           "all layers.")] = None,
                 head: Annotated[int | None, typer.Option("--head", min=0, help="For attention.")] = None,
                 plane: Annotated[bool, typer.Option("--plane", help="For landscape: vary two directions.")] = False,
                 method: Annotated[str, typer.Option("--method", help="For projection: pca, or tsne and umap if their "
                                                     "libraries are installed.")] = "pca",
                 corpus: Annotated[Path | None, typer.Option("--corpus", metavar="DIR", help="For training: the run's "
                                                             "prepared corpus, if it has been moved.")] = None,
                 seed: SeedOption = 0, *, output: Output) -> None:
    """Draw a figure: attention, gradient flow, layers, training and more, as PNG, SVG or PDF.

    Example: mini-bert plot attention "The cat sat on the mat." --layer 0 --head 1

    Example: mini-bert plot training runs/mine --out curves.svg
    """
    if kind not in FIGURES:
        raise InputError(f"There is no figure {kind!r}; choose one of {', '.join(FIGURES)}.")
    target = out if out is not None else Path(f"{kind}.png")
    request = FigureRequest(inputs or [], model, layer, head, plane, method, corpus, seed)
    try:
        path = FIGURES[kind](import_module("mini_bert.report.figures"), request).save(target)
    except (ModuleNotFoundError, ValueError) as error:        # the plots raise only built-in errors
        raise InputError(str(error)) from None
    output.result({"kind": kind, "file": str(path)}, escape(str(path)))
