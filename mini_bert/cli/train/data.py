"""mini-bert data: prepare a corpus for training, or look into one."""

from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.progress import TextColumn
from rich.text import Text

from ...text.batches import MODES, MLMBatch, MLMBatches
from ...text.corpora.corpus import Corpus
from ...text.corpora.prepare import prepare
from ...text.corpora.sources import FileReading, find_sources
from ...text.masking import Masking
from ...text.tokenizer import Tokenizer
from ..output import Output, SeedOption, progress_bar, table
from ..table_options import TextColumnOption, one_column
from .tokenizer import (
    Cased,
    Files,
    Include,
    StrictFolder,
    Where,
    load_tokenizer,
    replaced_bytes,
    skipped_files,
    total_size,
)

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Prepare a corpus for training, or look into one.")


@app.command("prepare")
def prepare_command(files: Files,
                    tokenizer: Where,
                    out: Annotated[Path, typer.Option("--out", "-o", help="The directory to create.")],
                    cased: Cased = None,
                    heldout: Annotated[float, typer.Option(help="Share of documents held out for evaluation.")] = 0.01,
                    keep_duplicates: Annotated[bool, typer.Option(
                        "--keep-duplicates", help="Keep repeated paragraphs.")] = False,
                    include: Include = None, text_column: TextColumnOption = None, strict: StrictFolder = False,
                    workers: Annotated[int | None, typer.Option(min=1, help="Processes; default: all cores.")] = None,
                    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing corpus.")] = False,
                    *, output: Output) -> None:
    """Turn text into a corpus for training: one file of token ids, with an index of sentences and documents.

    Blank lines separate documents; each line is a paragraph. The directory appears only when it is complete.

    Example: mini-bert data prepare corpus/*.txt --tokenizer tokenizer --out my.mb
    """
    start = perf_counter()
    with progress_bar(TextColumn("{task.fields[tokens]:,} tokens"), quiet=output.quiet, of_bytes=True) as bar:
        sources = find_sources(files, FileReading(tuple(include or ()), one_column(text_column), skip=not strict))
        task = bar.add_task("preparing", total=total_size(sources), tokens=0)
        manifest = prepare(sources, load_tokenizer(tokenizer, cased), out, heldout=heldout,
                           deduplicate=not keep_duplicates, strict=strict, workers=workers, overwrite=overwrite,
                           progress=lambda done, tokens: bar.update(task, completed=done, tokens=tokens))
    seconds = perf_counter() - start
    data = {**vars(manifest), "out": str(out), "seconds": round(seconds, 2)}
    lines = [f"{manifest.tokens:,} tokens in {manifest.documents:,} documents, {manifest.heldout_documents:,} of them "
             f"held out, from {manifest.bytes_read / 1e6:,.1f} MB in {seconds:.1f} s: {escape(str(out))}"]
    if manifest.duplicate_paragraphs:
        lines.append(f"{manifest.duplicate_paragraphs:,} of {manifest.paragraphs:,} paragraphs were duplicates "
                     "and were removed.")
    output.result(data, *lines, *replaced_bytes(manifest.invalid_bytes, manifest.first_invalid),
                  *skipped_files(manifest.skipped))


@app.command("show")
def show_command(directory: Annotated[Path, typer.Argument(metavar="DIR", help="A prepared corpus.")],
                 most: Annotated[int, typer.Option("--most", min=0, help="Number of frequent tokens to list.")] = 12,
                 mode: Annotated[str, typer.Option(help=f"How sequences are formed: {', '.join(MODES)}.")] = "packed",
                 masking: Annotated[str, typer.Option(help="The unit of masking: token, word or span.")] = "token",
                 rows: Annotated[int, typer.Option("--rows", min=1, help="Sequences to show.")] = 3,
                 length: Annotated[int, typer.Option("--length", min=5, help="Tokens per sequence.")] = 64,
                 seed: SeedOption = 0, *, output: Output) -> None:
    """Show a corpus: its size, unknown tokens, frequent tokens, and a batch with its masks in colour.

    Example: mini-bert data show corpus.mb --masking word
    """
    corpus = Corpus(directory)
    m, vocabulary = corpus.manifest, corpus.tokenizer.vocabulary
    counts = corpus.piece_counts()
    frequent = [(vocabulary[i], int(counts[i])) for i in (-counts).argsort(kind="stable")[:most]]
    batch = MLMBatches(corpus, max_seq_length=length, batch_size=rows, mode=mode, masking=Masking(unit=masking),
                    seed=seed)[0]
    facts = {"documents": m.documents, "held out": m.heldout_documents, "sentences": m.sentences, "tokens": m.tokens,
             "unknown": f"{m.unknown_tokens:,} ({m.unknown_tokens / m.tokens:.3%})", "vocabulary": m.vocab_size,
             "tokens in use": int((counts > 0).sum()), "duplicate paragraphs removed": m.duplicate_paragraphs}
    summary = table("corpus", shown_directory := escape(str(directory)), right=(shown_directory,))
    for name, value in facts.items():
        summary.add_row(name, value if isinstance(value, str) else f"{value:,}")
    pieces = table("token", "occurrences", "share", right=("occurrences", "share"))
    for piece, count in frequent:
        pieces.add_row(Text(piece), f"{count:,}", f"{count / m.tokens:.2%}")
    shown = [_coloured(corpus.tokenizer, batch, row) for row in range(len(batch.input_ids))]
    output.result(
        {"manifest": vars(m), "frequent": frequent,
         "batch": [{"text": corpus.tokenizer.decode(batch.input_ids[row][batch.attention_mask[row]]),
                    "targets": [vocabulary[i] for i in batch.target_ids[row][batch.mask_positions[row]]]}
                   for row in range(len(batch.input_ids))]},
        summary, "", pieces, "", "A batch: [red]masked[/red], [yellow]replaced[/yellow], [cyan]kept[/cyan]; the "
        "original token in parentheses", *shown)


def _coloured(tokenizer: Tokenizer, batch: MLMBatch, row: int) -> Text:
    text = Text()
    vocabulary, there = tokenizer.vocabulary, batch.attention_mask[row]
    for given, true, chosen in zip(batch.input_ids[row][there].tolist(), batch.target_ids[row][there].tolist(),
                                   batch.mask_positions[row][there].tolist(), strict=True):
        style: Any = "" if not chosen else "red" if given == vocabulary.mask else "yellow" if given != true else "cyan"
        piece = vocabulary[given] + (f"({vocabulary[true]})" if chosen and given != true else "")
        text.append(piece, style).append(" ")
    return text
