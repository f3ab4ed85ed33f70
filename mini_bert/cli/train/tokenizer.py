"""mini-bert tokenizer: learn a vocabulary; encode, decode and inspect text."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer
from rich.markup import escape
from rich.text import Text

from ...errors import InputError, VocabularyError
from ...files import claimed
from ...text.corpora.sources import FileReading, ReadingReport, Source, find_sources, paragraphs
from ...text.learner import LearnerOf
from ...text.opening import load_tokenizer as load_any
from ...text.opening import require_free
from ...text.tokenizer import Tokenizer
from ..lines import read_lines
from ..output import Output, progress_bar, table
from ..table_options import EncodingOption, TextColumnOption, one_column

app = typer.Typer(no_args_is_help=True, add_completion=False,
                  help="Learn a vocabulary; encode, decode and inspect text.")

Files = Annotated[list[str], typer.Argument(
    metavar="FILES", help="Files, folders, patterns, .gz/.xz/.bz2 files, - for standard input, hub:NAME, or pydocs.")]
Where = Annotated[str, typer.Option("--tokenizer", "-t", metavar="DIR", help="A tokenizer's directory or vocab.txt.")]
Cased = Annotated[bool | None, typer.Option(
    "--cased/--uncased", help="Whether case and accents are kept; needed if the vocabulary does not say.")]
StrictText = Annotated[bool, typer.Option("--strict", help="Refuse text that is not UTF-8.")]
StrictFolder = Annotated[bool, typer.Option("--strict", help="Refuse files of a folder that cannot be read, and text "
                                            "that is not UTF-8.")]
Include = Annotated[list[str] | None, typer.Option("--include", metavar="PATTERN", help="Of folders, read only files "
                                                   "such as *.md; may be repeated.", show_default=False)]
Words = Annotated[list[str] | None, typer.Argument(metavar="TEXT", help="The text; default: standard input.")]


_LISTED = 5                   # files that were skipped


@app.command("train")
def train_command(files: Files, out: Annotated[Path, typer.Option("--out", "-o", help="The directory to write.")],
                  kind: Annotated[str, typer.Option(help="wordpiece, as in BERT, or byte_bpe, as in GPT-2 and "
                                                         "RoBERTa.")] = "wordpiece",
                  vocab_size: Annotated[int, typer.Option(min=10, help="Size of the vocabulary.")] = 8192,
                  cased: Annotated[bool | None, typer.Option(
                      "--cased/--uncased", help="wordpiece: keep case and accents; default: uncased.")] = None,
                  min_frequency: Annotated[int, typer.Option(min=1, help="Merge only pairs this frequent.")] = 2,
                  alphabet_limit: Annotated[int | None, typer.Option(
                      min=1, help="wordpiece: most characters to include; default: 1000.")] = None,
                  layout: Annotated[str | None, typer.Option(
                      help="byte_bpe: the special tokens of bert (default), roberta or gpt2.")] = None,
                  prefix_space: Annotated[bool | None, typer.Option(
                      "--prefix-space/--no-prefix-space", help="byte_bpe: put a space before a text, so that its "
                                                               "first word is encoded like any other; default: "
                                                               "no.")] = None,
                  include: Include = None, text_column: TextColumnOption = None,
                  encoding: EncodingOption = None, strict: StrictFolder = False,
                  overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a tokenizer.")] = False,
                  *, output: Output) -> None:
    """Learn a vocabulary from text. The same text gives the same vocabulary.

    Example: mini-bert tokenizer train corpus/*.txt --vocab-size 2000 --out my.tokenizer

    Example: mini-bert tokenizer train corpus/*.txt --kind byte_bpe --layout roberta --out my.bpe
    """
    start = perf_counter()
    learner = LearnerOf(kind, {"lowercase": None if cased is None else not cased, "min_frequency": min_frequency,
                               "alphabet_limit": alphabet_limit, "layout": layout, "add_prefix_space": prefix_space})
    with claimed(out, VocabularyError(f"Another process is writing {out}."), VocabularyError) as claim:
        require_free(out, overwrite)
        reading = FileReading(tuple(include or ()), one_column(text_column), not strict, encoding)
        sources, report = find_sources(files, reading), ReadingReport()
        with progress_bar(quiet=output.quiet, of_bytes=True) as bar:
            task = bar.add_task("counting words", total=total_size(sources))

            def texts() -> Iterator[str]:
                for paragraph in paragraphs(sources, report, strict):
                    bar.update(task, completed=report.bytes_read)
                    yield paragraph or ""

            words = learner.count(texts())
        with output.progress("merging pairs", vocab_size) as progress:
            made = learner.learn(words, vocab_size, progress)
        with claim.filled(lambda old: require_free(old, overwrite)) as folder:
            made.save(folder)
    data = {"out": str(out), "kind": kind, "vocab_size": len(made), "words": len(words), "occurrences": words.total(),
            "bytes_read": report.bytes_read, "invalid_bytes": report.invalid, "first_invalid": report.first_invalid,
            "seconds": round(perf_counter() - start, 2)}
    fewer = f", fewer than --vocab-size {vocab_size}," if len(made) < vocab_size else ""       # the text has no more
    output.result(data, f"{len(made):,} tokens{fewer} from {words.total():,} words, {len(words):,} of them distinct, "
                        f"in {data['seconds']} s: {escape(str(out))}",
                  *replaced_bytes(report.invalid, report.first_invalid), *skipped_files(report.skipped))


@app.command("encode")
def encode_command(text: Words = None, tokenizer: Where = "tokenizer", cased: Cased = None,
                   no_special: Annotated[bool, typer.Option(
                       "--no-special", help="Omit special tokens such as \\[CLS].")] = False,
                   strict: StrictText = False, *, output: Output) -> None:
    """Print the token ids of a text, one line of ids per line of text.

    Example: mini-bert tokenizer encode --tokenizer mini "The cat sat."

    Example: mini-bert tokenizer encode --tokenizer tokenizer/vocab.txt --uncased < sentences.txt
    """
    made = load_tokenizer(tokenizer, cased)
    lines, invalid = read_lines(text, strict)
    rows = [made.encode(line, add_special_tokens=not no_special) for line in lines]
    output.result({"ids": rows, "invalid_bytes": invalid}, *(" ".join(map(str, row)) for row in rows))


@app.command("decode")
def decode_command(ids: Annotated[list[str] | None, typer.Argument(
                       metavar="IDS", help="Token ids; default: standard input.")] = None,
                   tokenizer: Where = "tokenizer", cased: Cased = None, *, output: Output) -> None:
    """Print the text of token ids, one line of text per line of ids.

    Example: mini-bert tokenizer decode --tokenizer mini 2 46 903 3
    """
    made = load_tokenizer(tokenizer, cased)
    texts = [made.decode(_numbers(line)) for line in read_lines(ids)[0]]
    output.result({"texts": texts}, *(Text(text) for text in texts))


@app.command("inspect")
def inspect_command(text: Words = None, tokenizer: Where = "tokenizer", cased: Cased = None, strict: StrictText = False,
                    *, output: Output) -> None:
    """Show a text word by word: tokens, ids, and the character positions in the text.

    Example: mini-bert tokenizer inspect --tokenizer mini "unaffable, isn't it?"
    """
    made = load_tokenizer(tokenizer, cased)
    rows = table("word", "pieces", "ids", "characters")
    data = []
    lines, invalid = read_lines(text, strict)
    for line in lines:
        encoding = made.align(line, add_special_tokens=False)
        for number in dict.fromkeys(encoding.word_ids):
            places = [i for i, word in enumerate(encoding.word_ids) if word == number]
            start, end = encoding.offsets[places[0]][0], encoding.offsets[places[-1]][1]
            pieces, ids = [encoding.tokens[i] for i in places], [encoding.ids[i] for i in places]
            data.append({"word": line[start:end], "pieces": pieces, "ids": ids, "characters": [start, end]})
            rows.add_row(Text(line[start:end]), Text(" ".join(pieces)), " ".join(map(str, ids)), f"{start}-{end}")
    output.result({"words": data, "invalid_bytes": invalid}, rows)


def total_size(sources: Sequence[Source]) -> int | None:
    """The size of all sources in bytes, if it is known."""
    sizes = [source.size for source in sources]
    return None if None in sizes else sum(size for size in sizes if size is not None)


def replaced_bytes(count: int, first: str | None) -> list[str]:
    """A warning about bytes that are not UTF-8, if there are any."""
    return [f"[yellow]{count:,} bytes were not UTF-8 and were replaced, the first in {escape(str(first))}.[/yellow]"] \
        if count else []


def skipped_files(skipped: dict[str, str]) -> list[str]:
    """A warning about files of folders that were left out, with the first of them."""
    if not skipped:
        return []
    shown = "; ".join(escape(reason) for reason in list(skipped.values())[:_LISTED])
    return [f"[yellow]{len(skipped):,} file{'s' if len(skipped) > 1 else ''} of folders cannot be read and were "
            f"skipped: {shown}{' ...' if len(skipped) > _LISTED else ''}[/yellow]"]


def load_tokenizer(where: str, cased: bool | None) -> Tokenizer:
    """Load a command's tokenizer; `cased` is None unless --cased or --uncased is given."""
    return load_any(where, lowercase=None if cased is None else not cased)


def _numbers(line: str) -> list[int]:
    """Ids separated by spaces or commas."""
    words = line.replace(",", " ").split()
    for word in words:
        if not (word.isascii() and word.removeprefix("-").isdigit() and len(word) < 20):
            raise InputError(f"A token id must be an integer, not {word!r}.")
    return [int(word) for word in words]
