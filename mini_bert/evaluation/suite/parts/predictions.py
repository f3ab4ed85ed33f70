"""Masked prediction: loss and accuracy on the text; top-k accuracy, calibration and gradients on samples of it."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ....core.model import MiniBERT
from ....errors import InputError
from ....text.batches import MLMBatch
from ....workers import workers
from ...masked_lm import Predictions, masked_batches, predictions, report
from ...representations.intrinsic import intrinsic
from ...statistics import Interval, clustered_mean, over_seeds
from ..context import SPLIT, EvaluationContext
from ..rows import HIGHER, LOWER, NUMBER, PERCENT, Figure, PartResult, SummaryRow

_AT_A_TIME = 32                       # micro-batches between two calls of progress


def masked(context: EvaluationContext) -> PartResult:
    """Loss and accuracy, by position and by frequency, with baselines."""
    batches = sample(context)
    ours, random = (predicted(context, network, batches, name) for network, name in
                    ((context.model, "model"), (context.untrained(), "random init")))
    found = report(ours, context.frequencies, len(context.tokenizer))
    most = int(context.frequencies.counts.argmax())
    size = f"{found.masked:,} masked tokens"
    before, own = (clustered_mean(p.loss, sequences_of(batches)) for p in (random, ours))
    rows = [SummaryRow("loss", own, found.baselines, before, NUMBER, size, LOWER),
            SummaryRow("accuracy", accuracy(ours, batches),
                       {"most frequent token": float((ours.token == most).mean())}, accuracy(random, batches),
                       sample=size, better=HIGHER)]
    return PartResult(rows, found.to_dict(), [f"Unigram and bigram use counts of {context.counted}."])


def sample(context: EvaluationContext) -> list[MLMBatch]:
    """Micro-batches of the text with 15 % of the tokens masked; the masks depend on the seed only."""
    made = masked_batches(context.corpus, SPLIT, context.length, context.seed, context.sizes.sequences)
    return [batch for batch in made if batch.mask_positions.any()]


def predicted(context: EvaluationContext, model: MiniBERT, batches: list[MLMBatch], name: str) -> Predictions:
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
    """The index of the sequence of each masked token."""
    rows, first = [], 0
    for batch in batches:
        rows.append(np.nonzero(batch.mask_positions)[0] + first)
        first += len(batch.input_ids)
    return np.concatenate(rows)


def accuracy(found: Predictions, batches: list[MLMBatch]) -> Interval:
    return clustered_mean(found.right, sequences_of(batches))


# -------------------------------------------------------------------- samples


def samples(context: EvaluationContext) -> list[dict[str, Any]]:
    """The intrinsic evaluation of several samples of the text, each with its own seed; shared by several parts."""
    made: list[dict[str, Any]] = context.shared.setdefault("samples", [])
    for number in range(len(made), context.sizes.samples):
        made.append(intrinsic(context.model, context.tokenizer, context.corpus, split=SPLIT, length=context.length,
                              seed=context.seed + number, threads=context.threads,
                              max_sequences=context.sizes.sample_sequences).to_dict())
        context.report("samples", number + 1, context.sizes.samples)
    return made


def nested(*keys: str) -> Callable[[dict[str, Any]], float]:
    """A function that looks up a number by its keys in nested dictionaries."""
    def find(figures: Any) -> float:
        for key in keys:
            figures = figures[key]
        return float(figures)

    return find


class SampleIntervals:
    """Scores of the model and of random weights, with intervals over the samples."""

    def __init__(self, found: list[dict[str, Any]]):
        self._found = found
        self.size = f"{len(found)} samples of {found[0]['sequences']:,} sequences"

    def row(self, figure: str, value: Callable[[dict[str, Any]], float], baselines: Mapping[str, Figure] | None = None,
            unit: str = NUMBER, better: str | None = None) -> SummaryRow:
        """`value` gets the score from the intrinsic figures of one sample and one model."""
        ours, random = (over_seeds([value(sample[whose]) for sample in self._found])
                        for whose in ("model", "random_init"))
        return SummaryRow(figure, ours, baselines or {}, random, unit, self.size, better)


def guesses(context: EvaluationContext) -> PartResult:
    """Top-k accuracy, calibration, and the gradient norm."""
    found = samples(context)
    over, first = SampleIntervals(found), found[0]
    rows = [over.row(f"accuracy in {top} guesses", nested("masked", "accuracy", top, "mean"),
                     {"most frequent tokens": over_seeds([of["most_frequent"][top] for of in found])}, PERCENT, HIGHER)
            for top in ("5", "10")]
    by_chance = over_seeds([of["model"]["masked"]["calibration"]["error_by_chance"] for of in found])
    rows.append(over.row("calibration error", nested("masked", "calibration", "error"),
                         {"by chance": by_chance}, PERCENT))
    rows.append(over.row("norm of the gradient", nested("masked", "gradient_norm")))
    return PartResult(rows, {"sample": {key: first[key] for key in ("sequences", "length", "tokens", "masked", "seed")},
                             "most_frequent": first["most_frequent"], "model": first["model"]["masked"],
                             "random_init": first["random_init"]["masked"]},
                      ["The details are for the first sample. The calibration error is the gap between confidence and "
                       "accuracy; by chance is the error of a perfectly calibrated model on as many tokens. A model "
                       "with random weights is well calibrated, because it is never confident."])
