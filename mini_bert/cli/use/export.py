"""mini-bert export and quantise: a model as other libraries open it, or in fewer bytes."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.text import Text

from ...factory import load_with_head
from ...interop.exports import export
from ...interop.quantising import quantise
from ..output import Output, table
from .inference import Model

Out = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The new directory.")]


class Format(StrEnum):
    onnx = "onnx"
    huggingface = "huggingface"
    sentence_transformers = "sentence-transformers"


class Given(StrEnum):
    hidden = "hidden"
    logits = "logits"
    pooled = "pooled"
    vectors = "vectors"


class Kind(StrEnum):
    int8 = "int8"
    bf16 = "bf16"
    fp16 = "fp16"


def export_command(out: Out,
                   format: Annotated[Format, typer.Option("--format", "-f", help="Whose files to write.")],
                   model: Model = "mini",
                   given: Annotated[Given | None, typer.Option(
                       "--output", help="What a file of ONNX gives: hidden states, logits of words or labels, pooled "
                       "vectors, or vectors of texts as `embed` has them. Default: logits if the model has a head.",
                       show_default=False)] = None, *, output: Output) -> None:
    """Write a model for other libraries: ONNX, transformers or sentence-transformers.

    A file of ONNX takes any batch and length, and is compared with the model by onnxruntime before it is written. It
    needs the extra onnx: pip install 'mini-bert\\[onnx]'.

    Example: mini-bert export --format onnx --out mini.onnx.model

    Example: mini-bert export --model reviews.model --format onnx --out reviews.onnx.model
    """
    network, tokenizer = load_with_head(model)
    found = export(network, tokenizer, out, format=format.value, output=None if given is None else given.value)
    rows = table("", "")
    for kind in ("inputs", "outputs"):
        for name, axes in found.get(kind, {}).items():
            rows.add_row(kind.removesuffix("s"), Text(f"{name} ({', '.join(map(str, axes))})"))
    for name in ("model_type", "dimensions"):
        if name in found:
            rows.add_row(name.replace("_", " "), Text(str(found[name])))
    if "largest_difference" in found:
        rows.add_row("difference", f"{found['largest_difference']:.1e} from the model, at most, in onnxruntime")
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    output.result({"model": model, "out": str(out), "format": format.value, "bytes": size, **found},
                  f"{format.value}, {size:,} bytes: {escape(str(out))}", rows)


def quantise_command(out: Out,
                     to: Annotated[Kind, typer.Option("--to", help="How weights are stored: int8 with a scale for each "
                                                      "output channel, or as bfloat16 or float16.")] = Kind.int8,
                     model: Model = "mini", *, output: Output) -> None:
    """Write a model whose weights take fewer bytes, on disk and in memory. It opens like any other, for use alone.

    Products are computed in float32 from a few columns at a time, so this saves memory and not time.

    Example: mini-bert quantise --to int8 --out mini.int8.model
    """
    network, tokenizer = load_with_head(model)
    found = quantise(network, tokenizer, out, to=to.value)
    output.result({"model": model, "out": str(out), "to": to.value, **found},
                  f"{to.value}: {found['bytes']:,} bytes of weights, {found['times']:.2f} times fewer than as float32: "
                  f"{escape(str(out))}",
                  f"worst error of a matrix, relative to its numbers: {found['worst_error']:.2%} "
                  f"({found['worst_matrix']})")


__all__ = ["export_command", "quantise_command"]
