"""mini-bert evaluate: how well a model predicts masked tokens of a text; or everything there is to measure."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from ...errors import InputError
from ...evaluation.masked_lm import Frequencies, evaluate_corpus
from ...factory import load
from ...inference.inputs import require_vocabulary
from ...text.corpora.corpus import Corpus
from ...text.corpora.prepare import prepare
from ...text.wordpiece.tokenizer import WordPieceTokenizer
from ..output import JsonOption, Output, QuietOption, SeedOption, ThreadsOption, table
from ..use.inference import Model

_PAGE = Path("evaluation.html")
_LENGTH = 64                  # tokens of a sequence, if the model takes so many


def evaluate_command(data: Annotated[list[str] | None, typer.Option(
                         "--data", "-d", metavar="FILE", help="Text to evaluate on; may be repeated. Default, with "
                                                              "--quick or --tasks: pydocs.")] = None,
                     model: Model = "mini",
                     quick: Annotated[bool, typer.Option("--quick", help="Everything, on samples: two or three "
                                                                         "minutes.")] = False,
                     tasks: Annotated[Path | None, typer.Option(
                         "--tasks", metavar="DIR", help="A folder of tasks: treebanks, sst2/, squad/, blimp/, "
                                                        "agreement/, lama/, wordsim/.")] = None,
                     only: Annotated[str | None, typer.Option("--only", metavar="PART,...",
                                                              help="These parts alone, such as pos,blimp.")] = None,
                     report: Annotated[Path | None, typer.Option(
                         "--report", metavar="FILE", help=f"The page to write. Default: {_PAGE}")] = None,
                     train: Annotated[Path | None, typer.Option(
                         metavar="DIR", help="The corpus of the training, for the baselines to count; else the "
                                             "text itself.")] = None,
                     length: Annotated[int | None, typer.Option("--length", min=8, help="Tokens of a sequence. "
                                                                "Default: 64, or what the model takes.")] = None,
                     max_samples: Annotated[int | None, typer.Option("--max-samples", min=2, help="No sample greater "
                                                                     "than this.")] = None,
                     threads: ThreadsOption = 0,
                     fresh: Annotated[bool, typer.Option("--fresh", help="Compute again what is remembered; --data "
                                                                         "alone is always computed.")] = False,
                     seed: SeedOption = 0, as_json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Evaluate a model: masked tokens of a text, or, with --quick, --tasks or --only, everything.

    With --data alone: choose 15 % of the tokens, the same for every model, and measure loss, perplexity and accuracy
    there, each token counting the same; by position and by frequency; with baselines. As in BERT's training, 80 % of
    the chosen tokens are hidden by a mask, 10 % by another token, and 10 % stay as they are. --max-samples is then of
    sequences. Nothing is written.

    Everything: predictions, representations, probes, fine-tuning, zero-shot tests and forgetting, each beside its
    baselines; a table, and a page with plots. Without --quick at full size, which takes hours. Parts are remembered:
    a second run is instant, and one that was interrupted goes on.

    Example: mini-bert evaluate --model mini --data wiki.dev.txt --data books.dev.txt --train corpus.mb

    Example: mini-bert evaluate --quick --tasks eval/ --data wiki.dev.txt

    Example: mini-bert evaluate --tasks eval/ --only pos,blimp --report grammar.html
    """
    if not data or quick or tasks is not None or only is not None or report is not None:
        from .evaluate_all import Asked, evaluate_everything

        evaluate_everything(Asked(model, data or ["pydocs"], tasks, train, only, quick, max_samples, length, threads,
                                  seed, fresh, report or _PAGE), Output(as_json, quiet))
    else:
        _masked(data, model, train, length, max_samples, threads, seed, Output(as_json, quiet))


def _masked(data: list[str], model: str, train: Path | None, length: int | None, max_samples: int | None, threads: int,
            seed: int, output: Output) -> None:
    network, tokenizer = load(model), WordPieceTokenizer.load(model)
    require_vocabulary(network, tokenizer)
    length = min(_LENGTH, network.config.max_seq_length) if length is None else length
    if length > network.config.max_seq_length:
        raise InputError(f"The model takes at most {network.config.max_seq_length} tokens, not --length {length}.")
    frequencies = None
    if train is not None:
        known = Corpus(train)
        known.require_vocabulary(tokenizer)
        frequencies = Frequencies(known, network.config.vocab_size)
    with tempfile.TemporaryDirectory() as folder:
        prepare(data, tokenizer, made := Path(folder) / "corpus", heldout=0.0, workers=1)
        found = evaluate_corpus(network, Corpus(made), split="train", length=length, seed=seed, threads=threads,
                                frequencies=frequencies, max_sequences=max_samples)
    source = "the training corpus" if train is not None else "the text itself, without the token"
    figures = table("", "loss", "", right=("loss",))
    figures.add_row("[bold]model[/bold]", f"[bold]{found.loss:.4f}[/bold]",
                    f"perplexity {found.perplexity:.1f}, accuracy {found.accuracy:.1%} of {found.masked:,} tokens")
    for name, loss in found.baselines.items():
        figures.add_row(name, f"{loss:.4f}", "" if name == "uniform" else f"by counts of {source}")
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


def _loss(loss: float, tokens: int) -> str:
    """Of no tokens there is no loss."""
    return f"{loss:.3f}" if tokens else "–"
