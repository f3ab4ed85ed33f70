"""How well a model predicts masked tokens, with baselines on the same positions.

Each masked token counts the same. Beside the mean: loss by position in the sequence and by how frequent the
token is; and what guessing evenly, by frequency, and by the token before would have lost.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.model import MiniBERT
from ..errors import InputError
from ..text.batches import MLMBatch, MLMBatches
from ..text.corpora.corpus import Corpus
from ..training.batch_gradients import micro_batches
from ..training.workers import Workers, workers
from .ngrams import NgramCounts

FREQUENCY_BANDS = (100, 1000, 10_000)         # the most frequent tokens up to these ranks, and the rest


@dataclass(frozen=True)
class Predictions:
    """At each masked position: its place in the sequence, the true token, the one before it, and the model's loss."""

    position: npt.NDArray[np.int64]
    token: npt.NDArray[np.int64]
    before: npt.NDArray[np.int64]
    loss: npt.NDArray[np.float64]
    right: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class MaskedReport:
    """The figures of an evaluation."""

    loss: float
    accuracy: float
    masked: int
    by_position: list[tuple[int, float, int]]     # first position of eight, mean loss, tokens
    by_frequency: list[tuple[str, float, int]]
    baselines: dict[str, float]

    @property
    def perplexity(self) -> float:
        return exp(self.loss)

    def to_dict(self) -> dict[str, Any]:
        return {"loss": self.loss, "perplexity": self.perplexity, "masked_accuracy": self.accuracy,
                "masked": self.masked, "baselines": self.baselines, "by_position": self.by_position,
                "by_frequency": self.by_frequency}


def predictions(model: MiniBERT, batches: Sequence[MLMBatch], team: Workers) -> Predictions:
    """The model's loss at every masked position of the batches."""
    training, model.training = model.training, False

    def one(batch: MLMBatch) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        logits, _ = model.forward(batch.input_ids, batch.attention_mask, token_types=batch.token_types,
                                  positions=batch.mask_positions, recompute=True)
        targets = batch.target_ids[batch.mask_positions]
        right = logits.argmax(axis=1) == targets
        at_target = logits[np.arange(len(targets)), targets].astype(np.float64)
        top = logits.max(axis=1)
        total = np.exp(logits - top[:, None]).sum(axis=1, dtype=np.float64)
        return np.log(total) + top - at_target, right

    try:
        results = team.map(one, batches)
    finally:
        model.training = training
    if not results:
        raise InputError("There is nothing to evaluate: no token is masked.")
    places = [np.nonzero(batch.mask_positions) for batch in batches]
    return Predictions(
        np.concatenate([columns for _, columns in places]),
        np.concatenate([batch.target_ids[where] for batch, where in zip(batches, places, strict=True)]),
        np.concatenate([batch.target_ids[rows, columns - 1] for batch, (rows, columns)
                        in zip(batches, places, strict=True)]),
        np.concatenate([loss for loss, _ in results]), np.concatenate([right for _, right in results]))


class Frequencies(NgramCounts):
    """The counts of a corpus' text for training, as guesses of masked tokens.

    With `leave_out` the text to predict is the text that was counted: each token's own occurrence is taken off.
    """

    def __init__(self, corpus: Corpus, vocab_size: int, *, leave_out: bool = False):
        super().__init__(corpus.token_chunks("train"), vocab_size, leave_out=leave_out)

    def unigram_loss(self, p: Predictions) -> float:
        return float(-np.log(self.single(p.token)).mean())

    def bigram_loss(self, p: Predictions) -> float:
        """From the true token before, mixed with single tokens; behind [CLS] and the like there is only frequency."""
        return float(-np.log(self.after(p.before, p.token)).mean())


def evaluate_corpus(model: MiniBERT, corpus: Corpus, *, split: str = "heldout", length: int = 64, seed: int = 0,
                    threads: int = 0, frequencies: Frequencies | None = None,
                    max_sequences: int | None = None) -> MaskedReport:
    """Mask 15 % of a split in sequences of `length` tokens, by the seed alone, and measure; all, or about so many.

    The baselines know `frequencies`, by default those of this corpus' text for training. If that is the text to
    predict, each token's own occurrence is left out of its counts.
    """
    size = 32 if max_sequences is None else min(32, max_sequences)
    batches = MLMBatches(corpus, split, max_seq_length=length, batch_size=size, seed=seed)
    if frequencies is None:
        frequencies = Frequencies(corpus, model.config.vocab_size, leave_out=split == "train")
    steps = len(batches) if max_sequences is None else min(len(batches), max_sequences // size)
    with workers(threads) as team:
        found = predictions(model, [part for step in range(steps) for part in micro_batches(batches[step], 8)], team)
    return report(found, frequencies, len(corpus.tokenizer))


def report(p: Predictions, frequencies: Frequencies, vocab_size: int) -> MaskedReport:
    """The figures that predictions and the counts of a corpus give."""
    positions = [(start, *_mean(p.loss[(p.position >= start) & (p.position < start + 8)]))
                 for start in range(0, int(p.position.max()) + 1, 8)]
    rank = np.empty(len(frequencies.counts), np.int64)
    rank[np.argsort(-frequencies.counts, kind="stable")] = np.arange(len(rank))
    bands, low = [], 0
    for high in (*FREQUENCY_BANDS, len(rank)):
        if low < min(high, len(rank)):
            inside = (rank[p.token] >= low) & (rank[p.token] < high)
            bands.append((f"rank {low + 1:,} to {min(high, len(rank)):,}", *_mean(p.loss[inside])))
        low = high
    return MaskedReport(float(p.loss.mean()), float(p.right.mean()), len(p.loss), positions, bands,
                        {"uniform": log(vocab_size), "unigram": frequencies.unigram_loss(p),
                         "bigram": frequencies.bigram_loss(p)})


def _mean(losses: npt.NDArray[np.float64]) -> tuple[float, int]:
    return (float(losses.mean()) if len(losses) else 0.0), len(losses)
