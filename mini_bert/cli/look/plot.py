"""mini-bert plot: figures of a model, a run, or the results of another command."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from rich.markup import escape

from ...core.model import MiniBERT
from ...errors import InputError
from ...factory import load
from ...text.wordpiece.tokenizer import WordPieceTokenizer
from ..output import JsonOption, Output, QuietOption, SeedOption
from ..use.inference import Model, lines

if TYPE_CHECKING:
    from ...plots import Picture


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

    def opened(self) -> tuple[MiniBERT, WordPieceTokenizer]:
        return load(self.model), WordPieceTokenizer.load(self.model)

    def only(self, what: str) -> str:
        if len(self.inputs) != 1:
            raise InputError(f"This figure takes {what}, but {len(self.inputs)} inputs are given.")
        return self.inputs[0]

    def file(self, what: str) -> Path:
        path = Path(self.only(what))
        if not path.exists():
            raise InputError(f"There is no file or directory {path}.")
        return path


def _attention(request: FigureRequest) -> "Picture":
    from ...report.figures import attention_overview, create_attention_heatmap
    text = request.only("one text")
    model, tokenizer = request.opened()
    if request.layer is None and request.head is None:
        return attention_overview(model, tokenizer, text)
    return create_attention_heatmap(model, text, request.layer or 0, request.head or 0, tokenizer)


def _gradients(request: FigureRequest) -> "Picture":
    from ...report.figures import gradient_flow
    return gradient_flow(*request.opened(), request.only("one text"))


def _layers(request: FigureRequest) -> "Picture":
    from ...report.figures import layer_similarity
    return layer_similarity(*request.opened(), lines(request.inputs))


def _projection(request: FigureRequest) -> "Picture":
    from ...report.figures import sentence_projection
    return sentence_projection(*request.opened(), lines(request.inputs), request.method, request.seed)


def _landscape(request: FigureRequest) -> "Picture":
    from ...report.figures import landscape
    return landscape(*request.opened(), lines(request.inputs), plane=request.plane, seed=request.seed)


def _spectra(request: FigureRequest) -> "Picture":
    from ...report.figures import weight_spectra
    if request.inputs:
        raise InputError(f"The figure of spectra takes no input, but {request.inputs[0]!r} is given; "
                         "name the model with --model.")
    return weight_spectra(load(request.model), request.layer)


def _training(request: FigureRequest) -> "Picture":
    from ...report.figures import training_curves
    return training_curves(request.file("the directory of one run"), request.corpus)


def _weights(request: FigureRequest) -> "Picture":
    from ...report.figures import weight_evolution
    return weight_evolution(request.file("the directory of one run"))


def _probe(request: FigureRequest) -> "Picture":
    from ...report.figures import probe_accuracy
    return probe_accuracy(request.file("one file, the output of mini-bert probe --json"))


def _confusion(request: FigureRequest) -> "Picture":
    from ...report.figures import confusion
    return confusion(request.file("one file with a true and a predicted label per line"))


FIGURES: dict[str, Callable[[FigureRequest], "Picture"]] = {
    "attention": _attention, "gradients": _gradients, "layers": _layers, "projection": _projection,
    "landscape": _landscape, "spectra": _spectra, "training": _training, "weights": _weights, "probe": _probe,
    "confusion": _confusion}


def plot_command(kind: Annotated[str, typer.Argument(metavar="|".join(FIGURES), help="The figure to draw.")],
                 inputs: Annotated[list[str] | None, typer.Argument(
                     metavar="[INPUT]...", help="attention, gradients: a text. layers, projection, landscape: files "
                     "with one text per line. training, weights: the directory of a run. probe: the output of "
                     "mini-bert probe --json. confusion: a true and a predicted label per line.")] = None,
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
                 seed: SeedOption = 0, as_json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Draw a figure: attention, gradient flow, layers, training and more, as PNG, SVG or PDF.

    Examples: mini-bert plot attention "The cat sat on the mat." --layer 0 --head 1;
    mini-bert plot training runs/mine --out curves.svg
    """
    if kind not in FIGURES:
        raise InputError(f"There is no figure {kind!r}; choose one of {', '.join(FIGURES)}.")
    target = out if out is not None else Path(f"{kind}.png")
    request = FigureRequest(inputs or [], model, layer, head, plane, method, corpus, seed)
    try:
        path = FIGURES[kind](request).save(target)
    except (ModuleNotFoundError, ValueError) as error:        # the plots raise only built-in errors
        raise InputError(str(error)) from None
    Output(as_json, quiet).result({"kind": kind, "file": str(path)}, escape(str(path)))
