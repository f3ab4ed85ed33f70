"""How well a model predicts masked tokens, with baselines on the same positions.

Every masked token has the same weight. The report gives the mean loss, the loss by position in the sequence and by
frequency of the token, and the loss of three baselines: uniform, unigram, and bigram given the preceding token.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.model import MiniBERT
from ..errors import InputError
from ..objectives.masked import masked_predictions, micro_batches
from ..objectives.objective import Team
from ..parallel.processes import Spread, world
from ..text.batches import MLMBatch, MLMBatches
from ..text.corpora.corpus import Corpus
from ..workers import workers
from .ngrams import NgramCounts

FREQUENCY_BANDS = (100, 1000, 10_000)         # upper ranks of the bands; the rest is the last band

_BATCH, _MICRO_BATCH = 32, 8
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Predictions:
    """For each masked position: its index in the sequence, the true token, the preceding token, and the loss."""

    position: Ints
    token: Ints
    before: Ints
    loss: npt.NDArray[np.float64]
    right: npt.NDArray[np.bool_]          # the true token has the highest score


@dataclass(frozen=True)
class MaskedReport:
    """Masked loss and accuracy, in total and in detail, with the losses of the baselines."""

    loss: float
    accuracy: float
    masked: int
    by_position: list[tuple[int, float, int]]     # first of eight positions, mean loss, number of tokens
    by_frequency: list[tuple[str, float, int]]
    baselines: dict[str, float]

    @property
    def perplexity(self) -> float:
        return exp(self.loss)

    def to_dict(self) -> dict[str, Any]:
        return {"loss": self.loss, "perplexity": self.perplexity, "masked_accuracy": self.accuracy,
                "masked": self.masked, "baselines": self.baselines, "by_position": self.by_position,
                "by_frequency": self.by_frequency}


def predictions(model: MiniBERT, batches: Sequence[MLMBatch], team: Team) -> Predictions:
    """The model's loss at every masked position of the batches."""
    if not batches:
        raise InputError("There is nothing to evaluate: no token is masked.")
    found = masked_predictions(model, batches, team)
    return Predictions(*masked_tokens(batches), found.loss, found.right)


def masked_tokens(batches: Sequence[MLMBatch]) -> tuple[Ints, Ints, Ints]:
    """For each masked position: its index in the sequence, the true token, and the preceding token."""
    column = np.concatenate([np.nonzero(batch.mask_positions)[1] for batch in batches])
    return column, tokens_before(batches, 0), tokens_before(batches, 1)


def tokens_before(batches: Sequence[MLMBatch], distance: int) -> Ints:
    """The true token at this distance before each masked position, or the first one of the sequence if there is
    none."""
    places = [(batch.target_ids, *np.nonzero(batch.mask_positions)) for batch in batches]
    return np.concatenate([ids[rows, np.maximum(columns - distance, 0)] for ids, rows, columns in places])


class Frequencies(NgramCounts):
    """Unigram and bigram counts of a corpus' training text, as predictors of masked tokens.

    Set `leave_out` if the masked text is the counted text: each token's own occurrence is then not counted.
    """

    def __init__(self, corpus: Corpus, vocab_size: int, *, leave_out: bool = False):
        super().__init__(corpus.token_chunks("train"), vocab_size, leave_out=leave_out)

    def unigram_loss(self, p: Predictions) -> float:
        return float(-np.log(self.unigram(p.token)).mean())

    def bigram_loss(self, p: Predictions) -> float:
        """Predict from the preceding true token, interpolated with the unigram; after [CLS] by the unigram alone."""
        return float(-np.log(self.bigram(p.before, p.token)).mean())


def evaluate_corpus(model: MiniBERT, corpus: Corpus, *, split: str = "heldout", length: int = 64, seed: int = 0,
                    threads: int = 0, frequencies: Frequencies | None = None,
                    max_sequences: int | None = None) -> MaskedReport:
    """Mask 15 % of a split in sequences of `length` tokens, and measure the model there.

    The masks depend on the seed only, so that they are the same for every model. `max_sequences` limits the number of
    sequences (rounded to whole batches). The baselines use `frequencies`, by default the counts of the training text
    of this corpus; if that is also the text to predict, each token's own occurrence is left out.
    """
    if frequencies is None:
        frequencies = Frequencies(corpus, model.config.vocab_size, leave_out=split == "train")
    batches = masked_batches(corpus, split, length, seed, max_sequences)
    with workers(threads) as team:
        found = predictions(model, batches, Spread(world(), team))
    return report(found, frequencies, len(corpus.tokenizer))


def masked_batches(corpus: Corpus, split: str, length: int, seed: int, max_sequences: int | None) -> list[MLMBatch]:
    """A split, or about `max_sequences` sequences of it, in micro-batches with 15 % of the tokens masked."""
    size = _BATCH if max_sequences is None else min(_BATCH, max_sequences)
    batches = MLMBatches(corpus, split, max_seq_length=length, batch_size=size, seed=seed)
    steps = len(batches) if max_sequences is None else min(len(batches), max_sequences // size)
    return [part for step in range(steps) for part in micro_batches(batches[step], _MICRO_BATCH)]


def report(p: Predictions, frequencies: Frequencies, vocab_size: int) -> MaskedReport:
    """The report on predictions, with baselines from the counts of a corpus."""
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
