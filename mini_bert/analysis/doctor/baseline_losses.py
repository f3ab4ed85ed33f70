"""The losses that a curve is read against.

    uniform     ln V: every token alike                          where a model begins
    unigram     by the tokens' frequencies                       what the head's bias alone can learn
    bigram      by the token before, mixed with frequencies      what a look at one neighbour is worth

The unigram and bigram losses are measured on the very positions that the run is evaluated on.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from math import log
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import MiniBertError
from ...evaluation.ngrams import NgramCounts
from ...text.batches import MLMBatch
from ...text.corpora.corpus import Corpus
from .run_record import NotThere, RunRecord

MOST_TOKENS = 50_000_000      # counted; of a larger corpus, stretches spread over it
_STRETCH = 1 << 20


@dataclass(frozen=True)
class Levels:
    """Losses to compare with; None for what cannot be known here."""

    uniform: float
    unigram: float | None
    bigram: float | None
    counted_tokens: int | None            # of the corpus, for unigram and bigram

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def _some(corpus: Corpus) -> Iterator[npt.NDArray[np.int64]]:
    """The text for training, or every n-th stretch of it where it is very long."""
    every = -(-corpus.manifest.tokens // MOST_TOKENS)
    for number, tokens in enumerate(corpus.token_chunks("train", _STRETCH)):
        if number % every == 0:
            yield tokens


def measured_levels(run: RunRecord) -> Levels:
    """The levels of a run's text, or, where that is not there, what its config says of them."""
    try:
        return _counted(run, run.corpus)
    except MiniBertError as error:
        note = f"The levels are those that {run.directory} tells of itself: {error}"
        run.notes += [note] if note not in run.notes else []      # a report measures them twice
    except NotThere:
        pass                                      # whoever needs the text will say that it is not there
    return Levels(run.about("uniform_loss") or log(run.vocab_size), run.about("unigram_loss"), None, None)


def _counted(run: RunRecord, corpus: Corpus) -> Levels:
    before, token = _asked(run.heldout)
    counts = NgramCounts(_some(corpus), max(run.vocab_size, corpus.manifest.vocab_size),
                         leave_out=not corpus.manifest.heldout_documents)
    return Levels(log(corpus.manifest.vocab_size), float(-np.log(counts.unigram(token)).mean()),
                  float(-np.log(counts.bigram(before, token)).mean()), int(counts.counts.sum()))


def _asked(batches: list[MLMBatch]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """What stands at the masked positions, and the token before each."""
    places = [np.nonzero(batch.mask_positions) for batch in batches]
    token = np.concatenate([batch.target_ids[where] for batch, where in zip(batches, places, strict=True)])
    before = np.concatenate([batch.target_ids[rows, np.maximum(columns - 1, 0)]
                             for batch, (rows, columns) in zip(batches, places, strict=True)])
    return before, token
