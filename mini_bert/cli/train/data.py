"""mini-bert data: prepare a corpus for training, or look into one."""

from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer
from rich.markup import escape
from rich.progress import TextColumn

from ...text.corpora.prepare import prepare
from ...text.corpora.sources import FileReading, find_sources
from ..output import Output, progress_bar
from ..table_options import EncodingOption, TextColumnOption, one_column
from .data_show import show_command
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

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Prepare a corpus for training, or inspect one.")


@app.command("prepare")
def prepare_command(files: Files,
                    tokenizer: Where,
                    out: Annotated[Path, typer.Option("--out", "-o", help="The directory to create.")],
                    cased: Cased = None,
                    heldout: Annotated[float, typer.Option(help="Share of documents held out for evaluation.")] = 0.01,
                    keep_duplicates: Annotated[bool, typer.Option(
                        "--keep-duplicates", help="Keep repeated paragraphs.")] = False,
                    include: Include = None, text_column: TextColumnOption = None,
                    encoding: EncodingOption = None, strict: StrictFolder = False,
                    workers: Annotated[int | None, typer.Option(min=1, help="Processes; default: all cores.")] = None,
                    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing corpus.")] = False,
                    *, output: Output) -> None:
    """Turn text into a corpus for training: one file of token ids, with an index of sentences and documents.

    Blank lines separate documents; each line is a paragraph. The directory appears only when it is complete.

    Example: mini-bert data prepare corpus/*.txt --tokenizer tokenizer --out my.mb
    """
    start = perf_counter()
    with progress_bar(TextColumn("{task.fields[tokens]:,} tokens"), quiet=output.quiet, of_bytes=True) as bar:
        sources = find_sources(files, FileReading(tuple(include or ()), one_column(text_column), not strict, encoding))
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


app.command("show")(show_command)
