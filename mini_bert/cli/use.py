"""mini-bert fill-mask, embed, similar and score: a trained model at work."""

import json
import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.markup import escape
from rich.text import Text

from ..core.model import MiniBERT
from ..errors import InputError
from ..factory import load
from ..inference.embed import embed, similar
from ..inference.fill_mask import fill_mask
from ..inference.score import score
from ..text.sources import ReadingReport, find_sources, paragraphs
from ..text.tokenizer import WordPieceTokenizer
from .output import JsonOption, Output, QuietOption, SeedOption, table
from .progress import progress_bar

Model = Annotated[str, typer.Option("--model", "-m", metavar="NAME|DIR", help="A model with its tokenizer: one that "
                                    "ships, a run's best or final directory, or one of Hugging Face's.")]
Top = Annotated[int, typer.Option("--top", "-k", min=1, help="How many to show.")]
Batch = Annotated[int, typer.Option("--batch-size", "-b", min=1, help="Texts at a time.")]
_BAR = 30                     # characters of a bar for a probability of one


def _open(name: str) -> tuple[MiniBERT, WordPieceTokenizer]:
    return load(name), WordPieceTokenizer.load(name)


def lines(files: list[str] | None) -> list[str]:
    """Each paragraph of the files, or of standard input."""
    texts = [line for line in paragraphs(find_sources(files or ["-"]), ReadingReport()) if line is not None]
    if not texts:
        raise InputError("There is no text to read.")
    return texts


def fill_mask_command(texts: Annotated[list[str] | None, typer.Argument(
                          metavar="[TEXT]...", help="Texts with \\[MASK]; lines of standard input if none.")] = None,
                      model: Model = "mini", top: Top = 5, seed: SeedOption = 0, as_json: JsonOption = False,
                      quiet: QuietOption = False) -> None:
    """Fill [MASK] with the words that a model finds likeliest.

    Example: mini-bert fill-mask "The capital of France is [MASK]."
    """
    texts = texts or lines(None)
    network, tokenizer = _open(model)
    results = [fill_mask(network, tokenizer, text, top) for text in texts]
    shown: list[object] = []
    for text, masks in zip(texts, results, strict=True):
        shown.append(Text(text, "bold"))
        for number, candidates in enumerate(masks):
            rows = table("word" if len(masks) == 1 else f"mask {number + 1}", "probability", "",
                         right=("probability",))
            for candidate in candidates:
                rows.add_row(Text(candidate.token), f"{candidate.probability:.1%}",
                             "█" * round(_BAR * candidate.probability) or "▏")
            shown += [rows, ""]
    data = [{"text": text, "masks": [[c._asdict() for c in candidates] for candidates in masks]}
            for text, masks in zip(texts, results, strict=True)]
    Output(as_json, quiet).result({"model": model, "results": data}, *shown)


def embed_command(files: Annotated[list[str] | None, typer.Argument(
                      metavar="[FILE]...", help="A text a line; standard input if none.")] = None,
                  model: Model = "mini",
                  out: Annotated[Path | None, typer.Option(
                      "--out", "-o", help="Write a .npy file instead of JSON lines.")] = None,
                  batch_size: Batch = 32, normalise: Annotated[bool, typer.Option(
                      "--normalise/--raw", help="Vectors of length one.")] = True,
                  seed: SeedOption = 0, as_json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Turn sentences, a line each, into vectors: JSON lines on standard output, or a .npy file.

    Example: mini-bert embed sentences.txt --out vectors.npy
    """
    if out is not None and not out.parent.is_dir():
        raise InputError(f"There is no directory {out.parent} to write {out.name} to.")
    network, tokenizer = _open(model)
    texts = lines(files)
    with progress_bar(quiet=quiet) as bar:
        task = bar.add_task("embedding", total=len(texts))
        vectors = embed(network, tokenizer, texts, batch_size=batch_size, normalise=normalise,
                        progress=lambda done: bar.update(task, completed=done))
    if out is not None:
        temporary = out.with_name(f".{out.name}.partial.npy")
        np.save(temporary, vectors)
        temporary.replace(out)
        Output(as_json, quiet).result({"out": str(out), "shape": vectors.shape},
                                      f"{len(vectors):,} vectors of {vectors.shape[1]}: {escape(str(out))}")
    elif as_json:
        Output(as_json, quiet).result({"model": model, "texts": texts, "vectors": vectors.tolist()})
    else:
        for text, vector in zip(texts, vectors, strict=True):
            json.dump({"text": text, "vector": [round(float(x), 6) for x in vector]}, sys.stdout, ensure_ascii=False)
            print()


def similar_command(query: Annotated[str, typer.Argument(help="The sentence to look for.")],
                    files: Annotated[list[str] | None, typer.Argument(
                        metavar="[FILE]...", help="A text a line; standard input if none.")] = None,
                    model: Model = "mini",
                    top: Top = 5, batch_size: Batch = 32, seed: SeedOption = 0, as_json: JsonOption = False,
                    quiet: QuietOption = False) -> None:
    """Find the sentences of a file that are nearest to a query.

    Example: mini-bert similar "A cat sleeps." sentences.txt
    """
    network, tokenizer = _open(model)
    texts = lines(files)
    with progress_bar(quiet=quiet) as bar:
        task = bar.add_task("embedding", total=len(texts))
        found = similar(network, tokenizer, query, texts, top=top, batch_size=batch_size,
                        progress=lambda done: bar.update(task, completed=done))
    rows = table("cosine", "line", "text", right=("cosine", "line"))
    for neighbour in found:
        rows.add_row(f"{neighbour.cosine:.3f}", f"{neighbour.number + 1:,}", Text(neighbour.text))
    Output(as_json, quiet).result({"query": query, "neighbours": [n._asdict() for n in found]}, rows)


def score_command(texts: Annotated[list[str] | None, typer.Argument(
                      metavar="[TEXT]...", help="Texts to score; lines of standard input if none.")] = None,
                  model: Model = "mini", batch_size: Batch = 32, seed: SeedOption = 0, as_json: JsonOption = False,
                  quiet: QuietOption = False) -> None:
    """Score texts by pseudo-log-likelihood: each token's log-probability with the token masked, summed.

    Example: mini-bert score "The cat sat." "The cat sats."
    """
    texts = texts or lines(None)
    network, tokenizer = _open(model)
    found = score(network, tokenizer, texts, batch_size=batch_size)
    rows = table("log-likelihood", "a token", "perplexity", "text", right=("log-likelihood", "a token", "perplexity"))
    for text, result in zip(texts, found, strict=True):
        each = result.total / max(len(result.tokens), 1)
        rows.add_row(f"{result.total:.2f}", f"{each:.2f}", f"{result.perplexity:.1f}", Text(text))
    Output(as_json, quiet).result(
        {"model": model, "scores": [{"text": text, **r._asdict(), "perplexity": r.perplexity if r.tokens else None}
                                    for text, r in zip(texts, found, strict=True)]}, rows)
