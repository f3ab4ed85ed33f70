"""The losses that a curve is read against.

    uniform     ln V: every token alike                          where a model begins
    unigram     by the tokens' frequencies                       what the head's bias alone can learn
    bigram      by the token before, mixed with frequencies      what a look at one neighbour is worth
    reference   the shipped model's own curve, at as many tokens, if the vocabulary is the same

The unigram and bigram losses are measured on the very positions that the run is evaluated on.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from math import log
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import MiniBertError, VocabularyError
from ..evaluation.ngrams import NgramCounts
from ..pretrained import located
from ..text.batches import MLMBatch
from ..text.corpus import Corpus
from ..text.vocabulary import Vocabulary
from .run_record import NotThere, RunRecord

REFERENCE = "mini"
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
    for number, tokens in enumerate(corpus.stretches("train", _STRETCH)):
        if number % every == 0:
            yield tokens


def measured_levels(run: RunRecord) -> Levels:
    """The levels of a run's text, or, where that is not there, what its config says of them."""
    try:
        return _counted(run, run.corpus)
    except MiniBertError as error:
        run.notes.append(f"The levels are those that {run.directory} tells of itself: {error}")
    except NotThere:
        pass                                      # whoever needs the text will say that it is not there
    return Levels(run.about("uniform_loss") or log(run.vocab_size), run.about("unigram_loss"), None, None)


def _counted(run: RunRecord, corpus: Corpus) -> Levels:
    before, token = _asked(run.heldout)
    counts = NgramCounts(_some(corpus), max(run.vocab_size, corpus.manifest.vocab_size),
                         leave_out=not corpus.manifest.heldout_documents)
    return Levels(log(corpus.manifest.vocab_size), float(-np.log(counts.single(token)).mean()),
                  float(-np.log(counts.after(before, token)).mean()), int(counts.counts.sum()))


def _asked(batches: list[MLMBatch]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """What stands at the masked positions, and the token before each."""
    places = [np.nonzero(batch.mask_positions) for batch in batches]
    token = np.concatenate([batch.target_ids[where] for batch, where in zip(batches, places, strict=True)])
    before = np.concatenate([batch.target_ids[rows, np.maximum(columns - 1, 0)]
                             for batch, (rows, columns) in zip(batches, places, strict=True)])
    return before, token


@dataclass(frozen=True)
class Comparison:
    """The run beside the reference curve after as many tokens."""

    tokens: float
    loss: float
    reference: float
    low: float
    high: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def compared_with_reference(run: RunRecord) -> Comparison:
    """The last held-out loss beside the shipped model's curve."""
    try:
        content = json.loads((located(REFERENCE) / "reference.json").read_text("utf-8"))
        tokens, mean, low, high = (np.asarray(content[key], np.float64) for key in ("tokens", "mean", "low", "high"))
        same = Vocabulary.read(located(REFERENCE) / "vocab.txt").digest() == run.description["data"].get("vocab_digest")
    except (OSError, ValueError, KeyError, VocabularyError):
        raise NotThere("the reference curve cannot be read.") from None
    if not same:
        raise NotThere("its vocabulary is not that of the reference curve, so their losses cannot be compared.")
    curve = run.heldout_curve
    if not len(curve):
        raise NotThere("there is no held-out loss in its log yet.")
    seen, loss = float(curve.tokens[-1]), float(curve.losses[-1])
    if not tokens[0] <= seen * 1.01:              # a line is not continued beyond what was measured
        raise NotThere(f"the reference curve begins at {tokens[0]:,.0f} tokens, and the run has seen {seen:,.0f}.")
    at = min(seen, float(tokens[-1]))
    return Comparison(seen, loss, *(float(np.interp(at, tokens, values)) for values in (mean, low, high)))
