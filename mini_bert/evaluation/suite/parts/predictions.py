"""Predictions of masked tokens: loss and accuracy on the text; guesses, calibration and gradients on samples of it."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ....core.model import MiniBERT
from ....errors import InputError
from ....text.batches import MLMBatch, MLMBatches
from ....training.batch_gradients import micro_batches
from ....training.workers import workers
from ...masked_lm import Predictions, predictions, report
from ...representations.intrinsic import intrinsic
from ...statistics import Interval, of_groups, over_seeds
from ..context import SPLIT, Context
from ..rows import NUMBER, PERCENT, Figure, Measured, Row

_BATCH, _MICRO = 32, 8
_AT_A_TIME = 32                       # micro-batches between two reports of progress


def masked(context: Context) -> Measured:
    """Loss and accuracy, by position and by frequency, against guessing."""
    batches = sample(context)
    ours, random = (predicted(context, network, batches, name) for network, name in
                    ((context.model, "model"), (context.untrained(), "random init")))
    found = report(ours, context.frequencies, len(context.tokenizer))
    most = int(context.frequencies.counts.argmax())
    size = f"{found.masked:,} masked tokens"
    before, own = (of_groups(p.loss, sequences_of(batches)) for p in (random, ours))
    rows = [Row("loss", own, found.baselines, before, NUMBER, size),
            Row("accuracy", accuracy(ours, batches),
                {"most frequent token": float((ours.token == most).mean())}, accuracy(random, batches), sample=size)]
    return Measured(rows, found.to_dict(), [f"Unigram and bigram are guesses by counts of {context.counted}."])


def sample(context: Context) -> list[MLMBatch]:
    """Batches of the text with 15 % of the tokens masked, by the seed alone."""
    wanted = context.sizes.sequences
    size = _BATCH if wanted is None else min(_BATCH, wanted)
    batches = MLMBatches(context.corpus, SPLIT, max_seq_length=context.length, batch_size=size, seed=context.seed)
    steps = len(batches) if wanted is None else min(len(batches), wanted // size)
    made = [part for step in range(steps) for part in micro_batches(batches[step], _MICRO)]
    return [part for part in made if part.mask_positions.any()]


def predicted(context: Context, model: MiniBERT, batches: list[MLMBatch], name: str) -> Predictions:
    found = []
    with workers(context.threads) as team:
        for start in range(0, len(batches), _AT_A_TIME):
            found.append(predictions(model, batches[start : start + _AT_A_TIME], team))
            context.report(name, min(start + _AT_A_TIME, len(batches)), len(batches))
    if not found:
        raise InputError("There is nothing to evaluate: no token of the text is masked.")
    return Predictions(*(np.concatenate([getattr(part, name) for part in found])
                         for name in ("position", "token", "before", "loss", "right")))


def sequences_of(batches: list[MLMBatch]) -> Any:
    """The number of the sequence of each masked token."""
    rows, first = [], 0
    for batch in batches:
        rows.append(np.nonzero(batch.mask_positions)[0] + first)
        first += len(batch.input_ids)
    return np.concatenate(rows)


def accuracy(found: Predictions, batches: list[MLMBatch]) -> Interval:
    return of_groups(found.right, sequences_of(batches))


# -------------------------------------------------------------------- samples


def samples(context: Context) -> list[dict[str, Any]]:
    """The intrinsic figures of some samples of the text, each drawn by a seed of its own; several parts use them."""
    made: list[dict[str, Any]] = context.shared.setdefault("samples", [])
    for number in range(len(made), context.sizes.samples):
        made.append(intrinsic(context.model, context.tokenizer, context.corpus, split=SPLIT, length=context.length,
                              seed=context.seed + number, threads=context.threads,
                              max_sequences=context.sizes.sample_sequences).to_dict())
        context.report("samples", number + 1, context.sizes.samples)
    return made


def at(*way: str) -> Callable[[dict[str, Any]], float]:
    """Finds a figure by the keys that lead to it."""
    def find(figures: Any) -> float:
        for key in way:
            figures = figures[key]
        return float(figures)

    return find


class OverSamples:
    """Figures of the model and of random weights, with their intervals over the samples."""

    def __init__(self, found: list[dict[str, Any]]):
        self._found = found
        self.size = f"{len(found)} samples of {found[0]['sequences']:,} sequences"

    def row(self, figure: str, value: Callable[[dict[str, Any]], float], baselines: Mapping[str, Figure] | None = None,
            unit: str = NUMBER) -> Row:
        """`value` finds the figure in those of one sample and one model."""
        ours, random = (over_seeds([value(sample[whose]) for sample in self._found])
                        for whose in ("model", "random_init"))
        return Row(figure, ours, baselines or {}, random, unit, self.size)


def guesses(context: Context) -> Measured:
    """Accuracy in several guesses, calibration, and the norm of the gradient."""
    found = samples(context)
    over, first = OverSamples(found), found[0]
    rows = [over.row(f"accuracy in {top} guesses", at("masked", "accuracy", top, "mean"),
                     {"most frequent tokens": over_seeds([of["most_frequent"][top] for of in found])}, PERCENT)
            for top in ("5", "10")]
    by_chance = over_seeds([of["model"]["masked"]["calibration"]["error_by_chance"] for of in found])
    rows.append(over.row("calibration error", at("masked", "calibration", "error"),
                         {"by chance": by_chance}, PERCENT))
    rows.append(over.row("norm of the gradient", at("masked", "gradient_norm")))
    return Measured(rows, {"sample": {key: first[key] for key in ("sequences", "length", "tokens", "masked", "seed")},
                           "most_frequent": first["most_frequent"], "model": first["model"]["masked"],
                           "random_init": first["random_init"]["masked"]},
                    ["The details are of the first sample. Calibration: how far confidence is from the share of right "
                     "guesses; by chance is what a perfectly calibrated model would show on so few tokens. A "
                     "model that is never sure, such as one with random weights, is calibrated and useless."])
