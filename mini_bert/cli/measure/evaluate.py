"""mini-bert evaluate: masked or next-token prediction on a text, or the comprehensive evaluation."""

from pathlib import Path
from typing import Annotated

import typer

from ...errors import InputError
from ...evaluation.masked_lm import Frequencies, evaluate_corpus
from ...evaluation.segments import segment_losses
from ...inference.inputs import require_vocabulary
from ...parallel.launch import require_alone
from ...text.corpora.corpus import Corpus
from ...text.corpora.sources import FileReading, find_sources
from ...text.corpora.temporary import temporary_corpus
from ..config_file import ConfigOption
from ..output import Output, SeedOption, ThreadsOption, table
from ..table_options import EncodingOption, TextColumnOption, one_column
from ..use.inference import Model, opened

_PAGE = Path("evaluation.html")
_LENGTH = 64                  # default length of a sequence in tokens


def evaluate_command(data: Annotated[list[str] | None, typer.Option(
                         "--data", "-d", metavar="FILE", help="Text to evaluate on, or a table of texts; may be "
                                                              "repeated. Default of the comprehensive evaluation: "
                                                              "pydocs.")] = None,
                     model: Model = "mini",
                     quick: Annotated[bool, typer.Option("--quick", help="Evaluate everything on small samples, in "
                                                                         "two or three minutes.")] = False,
                     tasks: Annotated[Path | None, typer.Option(
                         "--tasks", metavar="DIR", help="A folder of task data: treebanks, sst2/, squad/, blimp/, "
                                                        "agreement/, lama/, wordsim/.")] = None,
                     only: Annotated[str | None, typer.Option("--only", metavar="PART,...",
                                                              help="Only these parts, such as pos,blimp.")] = None,
                     report: Annotated[Path | None, typer.Option(
                         "--report", metavar="FILE", help=f"The HTML report to write. Default: {_PAGE}")] = None,
                     text_column: TextColumnOption = None, encoding: EncodingOption = None,
                     train: Annotated[Path | None, typer.Option(
                         metavar="DIR", help="The prepared training corpus, whose n-grams the baselines count; by "
                                             "default they count the text itself.")] = None,
                     length: Annotated[int | None, typer.Option("--length", min=8, help="Tokens per sequence. Default: "
                                                                "64, or the model's maximum.")] = None,
                     segments: Annotated[bool, typer.Option("--segments", help="Of a causal model: read every document "
                                                            "in segments of --length tokens, with and without a memory "
                                                            "of the tokens before.")] = False,
                     max_samples: Annotated[int | None, typer.Option("--max-samples", min=2, help="Limit every "
                                                                     "sample to this size.")] = None,
                     threads: ThreadsOption = 0,
                     fresh: Annotated[bool, typer.Option("--fresh", help="Ignore cached results. Without --quick, "
                                                                         "--tasks, --only or --report nothing is "
                                                                         "cached.")] = False,
                     config: ConfigOption = None, seed: SeedOption = 0, *, output: Output) -> None:
    """Evaluate a model: masked prediction on a text, or, with --quick, --tasks, --only or --report, everything.

    With --data only: select 15 % of the tokens, the same for every model, and measure loss, perplexity and accuracy
    there, in total, by position and by frequency, with baselines. As in BERT's training, 80 % of the selected tokens
    are masked, 10 % are replaced by another token, and 10 % are left unchanged. --max-samples limits the number of
    sequences. Nothing is written.

    With --segments, measure the loss and perplexity of predicting each next token. A model with a recurrent stack is
    measured twice, with and without a memory as long as a segment; other models have no memory. --max-samples limits
    the number of documents.

    Otherwise, measure everything: predictions, representations, probes, fine-tuning, zero-shot tests and forgetting,
    each with its baselines, as a table and as an HTML report with plots. Without --quick this takes hours. Parts are
    cached: a second run is instant, and an interrupted run continues.

    Example: mini-bert evaluate --model runs/mine --data sentences.txt --train corpus.mb

    Example: mini-bert evaluate --quick --tasks eval --data sentences.txt

    Example: mini-bert evaluate --tasks eval --only pos,blimp --report grammar.html

    Example: mini-bert evaluate --config intrinsic --data sentences.txt

    Example: mini-bert evaluate --segments --model runs/gpt --data sentences.txt
    """
    reading = FileReading(text_column=one_column(text_column), encoding=encoding)
    if segments:
        _in_segments(data or ["pydocs"], reading, model, length, max_samples, threads, output)
    elif not data or quick or tasks is not None or only is not None or report is not None:
        from .evaluate_all import evaluate_everything

        require_alone()
        evaluate_everything(model, data or ["pydocs"], tasks, train, only, quick, max_samples, report or _PAGE, output,
                            length=length, threads=threads, seed=seed, fresh=fresh, reading=reading)
    else:
        _masked(data, reading, model, train, length, max_samples, threads, seed, output)


def _masked(data: list[str], reading: FileReading, model: str, train: Path | None, length: int | None,
            max_samples: int | None, threads: int, seed: int, output: Output) -> None:
    network, tokenizer = opened(model)
    require_vocabulary(network, tokenizer)
    length = min(_LENGTH, network.config.max_seq_length) if length is None else length
    if length > network.config.max_seq_length:
        raise InputError(f"--length must be at most {network.config.max_seq_length} for this model, not {length}.")
    frequencies = None
    if train is not None:
        known = Corpus(train)
        known.require_vocabulary(tokenizer)
        frequencies = Frequencies(known, network.config.vocab_size)
    with temporary_corpus(find_sources(data, reading), tokenizer) as corpus:
        found = evaluate_corpus(network, corpus, split="train", length=length, seed=seed, threads=threads,
                                frequencies=frequencies, max_sequences=max_samples)
    source = "the training corpus" if train is not None else "the text itself, without the token"
    figures = table("", "loss", "", right=("loss",))
    figures.add_row("[bold]model[/bold]", f"[bold]{found.loss:.4f}[/bold]",
                    f"perplexity {found.perplexity:.1f}, accuracy {found.accuracy:.1%} of {found.masked:,} tokens")
    for name, loss in found.baselines.items():
        figures.add_row(name, f"{loss:.4f}", "" if name == "uniform" else f"from counts of {source}")
    by_position = table("positions", "loss", "tokens", right=("loss", "tokens"))
    for start, loss, count in found.by_position:
        by_position.add_row(f"{start} to {start + 7}", _loss(loss, count), f"{count:,}")
    by_frequency = table("frequency", "loss", "tokens", right=("loss", "tokens"))
    for band, loss, count in found.by_frequency:
        by_frequency.add_row(band, _loss(loss, count), f"{count:,}")
    output.result(
        {"model": model, "data": data, "seed": seed, "length": length, "max_samples": max_samples, **found.to_dict(),
         "baselines_from": str(train) if train is not None else "data"},
        figures, "", by_position, "", by_frequency)


def _in_segments(data: list[str], reading: FileReading, model: str, length: int | None, max_samples: int | None,
                 threads: int, output: Output) -> None:
    network, tokenizer = opened(model)
    require_vocabulary(network, tokenizer)
    length = network.config.max_seq_length if length is None else length
    with temporary_corpus(find_sources(data, reading), tokenizer) as corpus:
        found = segment_losses(network, corpus, split="train", length=length, documents=max_samples, threads=threads)
    figures = table("memory", "loss", "perplexity", right=("memory", "loss", "perplexity"))
    for row in found.to_dict()["by_memory"]:
        figures.add_row(f"{row['memory']} tokens", f"{row['loss']:.4f}", f"{row['perplexity']:.1f}")
    output.result({"model": model, "data": data, **found.to_dict()}, figures,
                  f"{found.tokens:,} tokens of {found.documents:,} documents, in segments of {length} tokens")


def _loss(loss: float, tokens: int) -> str:
    """A dash if there are no tokens."""
    return f"{loss:.3f}" if tokens else "–"
