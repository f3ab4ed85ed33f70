"""mini-bert fill-mask, embed, similar and score: apply a trained model to text."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.markup import escape
from rich.text import Text

from ...core.model import MiniBERT
from ...errors import InputError
from ...factory import load
from ...files import output_file, write_files
from ...inference.collection import Collection
from ...inference.embed import embed, similar
from ...inference.fill_mask import Candidate, fill_mask
from ...inference.score import score
from ...inference.vector_files import WRITERS, Blocks, json_lines, require_writer
from ...text.corpora.sources import FileReading, find_sources, numbered_texts
from ...text.opening import load_tokenizer
from ...text.tokenizer import Tokenizer
from ...workers import workers
from ..completion import models
from ..output import Output, table
from ..table_options import EncodingOption, TextColumnOption, one_column

Model = Annotated[str, typer.Option("--model", "-m", metavar="NAME|DIR", help="A model with its tokenizer: a shipped "
                                    "one, the directory of a run or a fit, or one from Hugging Face.",
                                    autocompletion=models)]
Top = Annotated[int, typer.Option("--top", "-k", min=1, help="Number of results to show.")]
Batch = Annotated[int, typer.Option("--batch-size", "-b", min=1, help="Texts in one pass, at most.")]
_BLOCK = 4096                 # texts whose vectors are in memory at once
_BAR = 30                     # characters of a bar for probability 1


def opened(name: str) -> tuple[MiniBERT, Tokenizer]:
    """Load a model and its tokenizer."""
    return load(name), load_tokenizer(name)


def files_of(option: str, names: list[str] | None) -> list[Path]:
    """The files named by a text option; a cached result depends on them."""
    if names and "-" in names:
        raise InputError(f"{option} cannot be standard input; name files.")
    return [Path(source.name) for source in find_sources(names)] if names else []


class TextLine(NamedTuple):
    """A line, and its place."""

    text: str
    file: str                 # - for standard input
    number: int               # in its file, from 1


def text_lines(files: list[str] | None, text_column: list[str] | None = None, encoding: str | None = None,
               *, blank: bool = False) -> list[TextLine]:
    """The lines of the files, or of standard input, and the rows of tables: with `blank` all, otherwise those with
    text."""
    reading = FileReading(text_column=one_column(text_column), encoding=encoding)
    found = [TextLine(line, source.name, number) for source in find_sources(files or ["-"], reading)
             for number, line in numbered_texts(source) if line or blank]
    if not any(line.text for line in found):
        raise InputError("The input has no text; give at least one line that is not blank.")
    return found


def lines(files: list[str] | None) -> list[str]:
    """The texts of the lines that are not blank."""
    return [line.text for line in text_lines(files)]


def said_of_blank(given: list[TextLine], what: str) -> list[str]:
    """A sentence about blank lines, if there are any."""
    blank = [line for line in given if not line.text]
    if not blank:
        return []
    place = f"{blank[0].file}, line {blank[0].number}" if blank[0].file != "-" else f"line {blank[0].number}"
    return [f"{len(blank):,} of {len(given):,} lines {'is' if len(blank) == 1 else 'are'} blank, first "
            f"{escape(place)}: {what}."]


def _in_windows(texts: int, model: MiniBERT, what: str) -> list[str]:
    """A sentence about texts that were read in windows, if there are any."""
    if not texts:
        return []
    return [f"{texts:,} text{' was' if texts == 1 else 's were'} longer than the model's {model.config.max_seq_length} "
            f"tokens, and read in overlapping windows; {what}."]


def fill_mask_command(texts: Annotated[list[str] | None, typer.Argument(
                          metavar="TEXT", help="Texts with \\[MASK]; default: lines of standard input.")] = None,
                      model: Model = "mini", top: Top = 5, *, output: Output) -> None:
    """Fill [MASK] with the words that a model finds most likely.

    Example: mini-bert fill-mask "The capital of France is [MASK]."
    """
    texts = texts or lines(None)
    network, tokenizer = opened(model)
    results = [_filled(network, tokenizer, text, top, f"Text {number}: " if len(texts) > 1 else "")
               for number, text in enumerate(texts, 1)]
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
    output.result({"model": model, "results": data}, *shown)


def _filled(model: MiniBERT, tokenizer: Tokenizer, text: str, top: int, which: str) -> list[list[Candidate]]:
    try:
        return fill_mask(model, tokenizer, text, top)
    except InputError as error:
        raise InputError(f"{which}{error}") from None


def embed_command(files: Annotated[list[str] | None, typer.Argument(
                      metavar="FILE", help="Files with one text per line, or tables; default: standard input.")]
                  = None,
                  model: Model = "mini", text_column: TextColumnOption = None, encoding: EncodingOption = None,
                  out: Annotated[Path | None, typer.Option(
                      "--out", "-o", metavar="FILE", help="Write a .npy, .jsonl or .parquet file.")] = None,
                  batch_size: Batch = 256, normalise: Annotated[bool, typer.Option(
                      "--normalise/--raw", help="Scale vectors to length 1.")] = True, *, output: Output) -> None:
    """Turn texts, one per line or per row of a table, into vectors: JSON lines on standard output, or a file.

    Every line gets a vector; a blank line gets that of an empty text. A text longer than the model's window gets the
    mean of the vectors of its windows, weighted by tokens. A .npy file has the vectors alone, and is what `similar
    --vectors` and `serve --collection` search; .jsonl and .parquet have the texts as well.

    Example: mini-bert embed sentences.txt --out vectors.npy
    """
    if out is not None:
        output_file(out, tuple(WRITERS), [Path(name) for name in files or () if name != "-"])
        require_writer(out.suffix.lower())
    network, tokenizer = opened(model)
    given, too_long = text_lines(files, text_column, encoding, blank=True), list[int]()
    texts, width = [line.text for line in given], network.config.hidden_size
    said = said_of_blank(given, "its vector is that of an empty text")

    with output.progress("embedding", len(texts)) as progress:
        def blocks() -> Blocks:
            for start in range(0, len(texts), _BLOCK):
                some, long = texts[start : start + _BLOCK], list[int]()
                yield some, embed(network, tokenizer, some, batch_size=batch_size, normalise=normalise, too_long=long,
                                  progress=partial(_shifted, progress, start))
                too_long.extend(start + number for number in long)

        if out is not None:
            write_files(out.parent, {out.name: WRITERS[out.suffix.lower()](blocks(), len(texts), width)})
        elif output.as_json:
            vectors = [row.tolist() for _, rows in blocks() for row in rows]
        else:
            for line in json_lines(blocks()):
                print(line)
    said += _in_windows(len(too_long), network, "their vectors are the mean over the windows")
    if out is not None:
        output.result({"out": str(out), "shape": (len(texts), width), "too_long": too_long},
                      f"{len(texts):,} vectors of {width}: {escape(str(out))}", *said)
    elif output.as_json:
        output.result({"model": model, "texts": texts, "vectors": vectors, "too_long": too_long})
    else:
        for sentence in said:
            print(sentence, file=sys.stderr)          # standard output holds the vectors


def _shifted(progress: Callable[[int], None], start: int, done: int) -> None:
    progress(start + done)


def similar_command(query: Annotated[str, typer.Argument(metavar="TEXT", help="The sentence to compare with.")],
                    files: Annotated[list[str] | None, typer.Argument(
                        metavar="FILE", help="Files with one text per line, or tables; default: standard input.")]
                    = None,
                    model: Model = "mini", text_column: TextColumnOption = None, encoding: EncodingOption = None,
                    vectors: Annotated[Path | None, typer.Option(
                        "--vectors", metavar="FILE", help="Vectors of the texts, as `mini-bert embed --out` wrote them "
                        "with the same model: a .npy file of any size. Nothing is embedded but the query, and the "
                        "texts may be left out.")] = None,
                    top: Top = 5, batch_size: Batch = 256, *, output: Output) -> None:
    """Find the sentences in files that are nearest to a query.

    Example: mini-bert similar "A cat sleeps." sentences.txt

    Example: mini-bert similar "A cat sleeps." --vectors vectors.npy sentences.txt
    """
    if vectors is not None:
        _similar_in_file(query, vectors, files, FileReading(text_column=one_column(text_column), encoding=encoding),
                         model, top, output)
        return
    network, tokenizer = opened(model)
    given, too_long = text_lines(files, text_column, encoding), list[int]()
    with output.progress("embedding", len(given)) as progress:
        found = similar(network, tokenizer, query, [line.text for line in given], top=top, batch_size=batch_size,
                        too_long=too_long, progress=progress)
    places = [given[neighbour.number] for neighbour in found]
    several = len({line.file for line in given}) > 1
    rows = table("cosine", *(["file"] if several else []), "line", "text", right=("cosine", "line"))
    for neighbour, place in zip(found, places, strict=True):
        rows.add_row(f"{neighbour.cosine:.3f}", *([Text(place.file)] if several else []), f"{place.number:,}",
                     Text(neighbour.text))
    long_query = len(tokenizer.encode(query)) > network.config.max_seq_length
    output.result(
        {"query": query, "query_too_long": long_query, "too_long": len(too_long),
         "neighbours": [{"text": n.text, "file": place.file, "line": place.number, "cosine": n.cosine}
                        for n, place in zip(found, places, strict=True)]},
        rows, *_in_windows(len(too_long) + long_query, network, "their vectors are the mean over the windows"))


def _similar_in_file(query: str, vectors: Path, files: list[str] | None, reading: FileReading, model: str, top: int,
                     output: Output) -> None:
    """The nearest of a file of vectors. Of the texts, only those that are shown are kept in memory."""
    network, tokenizer = opened(model)
    collection = Collection(vectors)
    with workers() as team:
        hits, = collection.search(embed(network, tokenizer, [query]), top, team)
    places = _rows(files, reading, [hit.number for hit in hits], len(collection)) if files else {}
    rows = table("cosine", "vector", *(["text"] if files else []), right=("cosine", "vector"))
    for hit in hits:
        rows.add_row(f"{hit.cosine:.3f}", f"{hit.number + 1:,}", *([Text(places[hit.number])] if files else []))
    output.result({"query": query, "vectors": str(vectors), "neighbours": [
        {"text": places.get(hit.number), "line": hit.number + 1, "cosine": hit.cosine} for hit in hits]}, rows)


def _rows(files: list[str], reading: FileReading, wanted: list[int], count: int) -> dict[int, str]:
    """The texts of these rows, counted from 0 through all files."""
    chosen, found, number = set(wanted), dict[int, str](), 0
    for source in find_sources(files, reading):
        for _, text in numbered_texts(source):
            if number in chosen:
                found[number] = text
            number += 1
    if number != count:
        raise InputError(f"There are {number:,} texts and {count:,} vectors; name the files that the vectors were made "
                         "from, in the same order.")
    return found


def score_command(texts: Annotated[list[str] | None, typer.Argument(
                      metavar="TEXT", help="Texts to score; default: lines of standard input.")] = None,
                  model: Model = "mini", batch_size: Batch = 256, *, output: Output) -> None:
    """Score texts by pseudo-log-likelihood: each token's log-probability with the token masked, summed.

    Example: mini-bert score "The cat sat." "The cat sats."
    """
    said = list[str]()
    if not texts:
        given = text_lines(None, blank=True)
        texts, said = [line.text for line in given], said_of_blank(given, "it has no score")
    network, tokenizer = opened(model)
    found = score(network, tokenizer, texts, batch_size=batch_size)
    figures = ("log-likelihood", "per token", "perplexity")
    rows = table(*figures, "text", right=figures)
    for text, result in zip(texts, found, strict=True):
        values = (f"{result.total:.2f}", f"{result.total / len(result.tokens):.2f}", f"{result.perplexity:.1f}") \
            if result.tokens else ("–", "–", "–")             # a text without tokens has no score
        rows.add_row(*values, Text(text))
    output.result(
        {"model": model, "scores": [{"text": text, **r._asdict(), "perplexity": r.perplexity if r.tokens else None}
                                    for text, r in zip(texts, found, strict=True)]}, rows, *said)
