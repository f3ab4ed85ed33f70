"""mini-bert data show: what is in a corpus, and what training sees of it at a step."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ...analysis.seen import SeenBatch, SeenRow, SeenStep, SeenWeights, seen_by_config, seen_by_run
from ...core.registry import words
from ...errors import ConfigError
from ...text.batches import MLMBatch, MLMBatches
from ...text.corpora.corpus import Corpus
from ...text.masking import Masking
from ...text.vocabulary import Vocabulary
from ...training.config import load_run_config
from ...training.runs.run import CONFIG
from ..output import Output, table
from .pretrain import Set

_LEGEND = "[red]masked[/red], [yellow]another token[/yellow], [cyan]kept[/cyan] (and the original token)"


def show_command(directory: Annotated[Path, typer.Argument(metavar="DIR", help="A prepared corpus, or a run.")],
                 config: Annotated[str | None, typer.Option(
                     "--config", "-c", metavar="PRESET|FILE", show_default=False,
                     help="Show what a new training run with this config sees at a step.")] = None,
                 changes: Set = None,
                 step: Annotated[int | None, typer.Option(
                     "--step", min=0, show_default=False,
                     help="The step, counted from 0; the first, or the one that a run has come to.")] = None,
                 data: Annotated[Path | None, typer.Option("--data", "-d", metavar="DIR", show_default=False,
                                                           help="The corpus of a run, if it has been moved.")] = None,
                 most: Annotated[int, typer.Option("--most", min=0, help="Number of tokens to list.")] = 12,
                 mode: Annotated[str | None, typer.Option(
                     show_default="packed", help=f"How sequences are formed: {', '.join(words('sequences'))}.")] = None,
                 masking: Annotated[str | None, typer.Option(
                     show_default="token", help=f"The unit of masking: {', '.join(words('masking_unit'))}.")] = None,
                 rows: Annotated[int, typer.Option("--rows", min=1, help="Sequences to show.")] = 3,
                 length: Annotated[int | None, typer.Option("--length", min=5, show_default="64",
                                                            help="Tokens per sequence.")] = None,
                 seed: Annotated[int | None, typer.Option("--seed", show_default="0",
                                                          help="Seed of every random draw.")] = None,
                 *, output: Output) -> None:
    """Show a corpus: its size, unknown tokens, frequent tokens, and a batch with its masks in colour. With --config, or
    for a run, show the batch of a step and the settings behind it.

    Example: mini-bert data show corpus.mb --config mini --set "training.masking_rate=0.4 -> 0.15" --step 5000
    """
    of_corpus = {"--mode": mode, "--masking": masking, "--length": length}
    if (directory / CONFIG).is_file():
        _refuse({**of_corpus, "--config": config, "--set": changes, "--seed": seed},
                f"does not apply to {directory}, a run that has its own config; leave it out.")
        _show_step(seen_by_run(directory, step, data, rows), most, output)
    elif config is not None:
        _refuse({**of_corpus, "--data": data},
                "cannot be combined with --config; choose what a run sees with --set training.KEY=VALUE.")
        sets = [*(changes or []), *([] if seed is None else [f"training.seed={seed}"])]
        _show_step(seen_by_config(*load_run_config(config, sets), Corpus(directory), step or 0, rows), most, output)
    else:
        _refuse({"--set": changes, "--step": step, "--data": data}, "needs --config, or the directory of a run.")
        corpus = Corpus(directory)
        batch = MLMBatches(corpus, max_seq_length=length or 64, batch_size=rows, mode=mode or "packed",
                           masking=Masking(unit=masking or "token"), seed=seed or 0)[0]
        _show_corpus(corpus, batch, most, output)


def _refuse(options: dict[str, Any], why: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise ConfigError(f"{name} {why}")


# -------------------------------------------------------------------- a corpus


def _show_corpus(corpus: Corpus, batch: MLMBatch, most: int, output: Output) -> None:
    m, vocabulary = corpus.manifest, corpus.tokenizer.vocabulary
    counts = corpus.piece_counts()
    frequent = [(vocabulary[i], int(counts[i])) for i in (-counts).argsort(kind="stable")[:most]]
    facts = {"documents": m.documents, "held out": m.heldout_documents, "sentences": m.sentences, "tokens": m.tokens,
             "unknown": f"{m.unknown_tokens:,} ({m.unknown_tokens / m.tokens:.3%})", "vocabulary": m.vocab_size,
             "tokens in use": int((counts > 0).sum()), "duplicate paragraphs removed": m.duplicate_paragraphs}
    summary = table("corpus", shown := escape(str(corpus.directory)), right=(shown,))
    for name, value in facts.items():
        summary.add_row(name, value if isinstance(value, str) else f"{value:,}")
    pieces = table("token", "occurrences", "share", right=("occurrences", "share"))
    for piece, count in frequent:
        pieces.add_row(Text(piece), f"{count:,}", f"{count / m.tokens:.2%}")
    there = batch.attention_mask
    rows = [SeenRow(*(field[row][there[row]] for field in (batch.input_ids, batch.target_ids, batch.mask_positions)))
            for row in range(len(there))]
    output.result(
        {"manifest": vars(m), "frequent": frequent,
         "batch": [{"text": corpus.tokenizer.decode(row.given), "targets": [vocabulary[i] for i in row.true[row.asked]]}
                   for row in rows]},
        summary, "", pieces, "", f"A batch: {_LEGEND}", *(_coloured(vocabulary, row) for row in rows))


def _coloured(vocabulary: Vocabulary, row: SeenRow) -> Text:
    text = Text()
    for given, true, asked in zip(row.given.tolist(), row.true.tolist(), row.asked.tolist(), strict=True):
        style = "" if not asked else "red" if given == vocabulary.roles.get("mask") else \
            "yellow" if given != true else "cyan"
        piece = vocabulary[given] + (f"({vocabulary[true]})" if asked and given != true else "")
        text.append(piece, style).append(" ")
    return text


# -------------------------------------------------------------------- a step


def _show_step(seen: SeenStep, most: int, output: Output) -> None:
    vocabulary = seen.corpus.tokenizer.vocabulary
    shown: list[Any] = [_summary(seen)]
    for batch in seen.batches:
        title = f"{batch.objective}: " if len(seen.batches) > 1 else ""
        shown += ["", f"{title}{len(batch.rows)} of {batch.sequences:,} sequences: {_legend(batch)}",
                  *(_row(vocabulary, number, row) for number, row in enumerate(batch.rows, 1))]
    if seen.weights is not None and most and not seen.weights.all_alike:
        shown += ["", _tokens(vocabulary, seen.weights, most)]
    output.result(_data(seen, vocabulary, most), *shown)


def _summary(seen: SeenStep) -> Table:
    training, values, total = seen.training, seen.values, seen.step.total
    made = table(f"step {int(seen.step):,}", f"of {total:,}, {seen.step.share:.1%} of the run is done" if total else "")
    for batch in seen.batches:
        name = f"batch of {batch.objective}" if len(seen.batches) > 1 else "batch"
        made.add_row(name, f"{batch.sequences:,} sequences, {batch.tokens:,} tokens, the longest has {batch.width}; "
                           f"{batch.padding:.1%} padding; {batch.asked:,} tokens to predict")
    made.add_row("epoch", f"{seen.batches[0].epoch + 1:,}")
    made.add_row("sequences", f"{seen.batches[0].kind}, at most {values.max_seq_length} tokens"
                 + (", those of similar length together" if training.bucket else ""))
    made.add_row("batch size", f"{values.batch_size}" + _follows(seen, "batch_size"))
    made.add_row("masking", f"{values.masking_rate:.1%} of the tokens, by the {training.masking_unit}"
                 + _follows(seen, "masking_rate"))
    made.add_row("", f"{training.masking_hidden:.0%} become \\[MASK], {training.masking_random:.0%} another token, "
                     f"{abs(1 - training.masking_hidden - training.masking_random):.0%} are kept")
    if seen.share is not None:
        batch = seen.batches[0]
        made.add_row("curriculum", f"the easiest {batch.open:,} of {batch.all:,} sequences, {seen.share:.1%}: "
                                   + escape(training.curriculum))
    if seen.weights is not None:
        made.add_row("masking weights", _weights(seen))
    return made


def _follows(seen: SeenStep, name: str) -> str:
    given = getattr(seen.training, name)
    return f" ({escape(given)})" if isinstance(given, str) else ""


def _weights(seen: SeenStep) -> str:
    assert seen.weights is not None
    words = escape(seen.training.masking_weights)
    if seen.weights.all_alike:
        return f"all equal so far: {words}"
    weights = seen.weights.weights[seen.weights.ordinary]
    learned = seen.weights.learned or 0
    return f"{weights.min():.2f} to {weights.max():.2f} times the mean, as of step {learned:,}: {words}"


def _legend(batch: SeenBatch) -> str:
    if not batch.asked:
        return "nothing is masked in them"
    return "each token is predicted one position earlier" if batch.rows[0].looks_ahead else _LEGEND


def _row(vocabulary: Vocabulary, number: int, row: SeenRow) -> Table:
    """A sequence in the width of the terminal, broken between tokens."""
    made = Table.grid(padding=(0, 1))
    made.add_column(justify="right", style="dim", no_wrap=True)
    made.add_column(overflow="fold")
    shown = Text(" ".join(vocabulary[i] for i in row.given.tolist())) if row.looks_ahead else _coloured(vocabulary, row)
    made.add_row(f"{number}", shown)
    return made


def _tokens(vocabulary: Vocabulary, weights: SeenWeights, most: int) -> Table:
    """The tokens with the highest weights next to those with the lowest."""
    made = table("most asked for", "weight", "found", "", "least asked for", "weight ", "found ",
                 right=("weight", "found", "weight ", "found "))
    order = weights.by_weight()
    for high, low in zip(order[:most].tolist(), order[::-1][:most].tolist(), strict=True):
        made.add_row(*_token(vocabulary, weights, high), "  ", *_token(vocabulary, weights, low))
    return made


def _token(vocabulary: Vocabulary, weights: SeenWeights, i: int) -> tuple[Text, str, str]:
    asked, found = weights.counts[:, i].tolist()
    return Text(vocabulary[i]), f"{weights.weights[i]:.2f}", f"{found:,} of {asked:,}"


def _data(seen: SeenStep, vocabulary: Vocabulary, most: int) -> dict[str, Any]:
    """The same for --json."""
    data: dict[str, Any] = {
        "step": int(seen.step), "total_steps": seen.step.total, "share": seen.step.share, **seen.values._asdict(),
        "masking_unit": seen.training.masking_unit, "objective": seen.training.objective,
        "batches": [{"objective": batch.objective, "sequences": batch.sequences, "kind": batch.kind,
                     "tokens": batch.tokens, "longest": batch.width, "padding": batch.padding,
                     "asked_for": batch.asked, "epoch": batch.epoch,
                     "rows": [{"tokens": [vocabulary[i] for i in row.given.tolist()],
                               "targets": {str(place): vocabulary[row.true[place]]
                                           for place in row.asked.nonzero()[0].tolist()}} for row in batch.rows]}
                    for batch in seen.batches]}
    if seen.share is not None:
        data["curriculum"] = {"words": seen.training.curriculum, "share": seen.share, "open": seen.batches[0].open,
                              "all": seen.batches[0].all}
    if seen.weights is not None:
        order = seen.weights.by_weight()
        listed = {"highest": order[:most].tolist(), "lowest": order[::-1][:most].tolist()}
        data["masking_weights"] = {
            "words": seen.training.masking_weights, "learned_to_step": seen.weights.learned, **seen.weights.noted,
            **{name: [{"token": vocabulary[i], "weight": float(seen.weights.weights[i]),
                       "asked": int(seen.weights.counts[0, i]), "found": int(seen.weights.counts[1, i])} for i in ids]
               for name, ids in listed.items()}}
    return data
