"""Baseline losses, with which a loss curve is compared.

    uniform     ln V: all tokens equally likely                        where an untrained model starts
    unigram     token frequencies                                      what the head's bias alone can learn
    bigram      frequencies after the previous token, interpolated     what one neighbour contributes
    trigram     frequencies after the two tokens before, interpolated  what a second one adds: to beat it takes context

All but the first are measured on the positions that the run is evaluated on.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import log

import numpy as np
import numpy.typing as npt

from ...errors import MiniBertError
from ...evaluation.masked_lm import masked_tokens, tokens_before
from ...evaluation.ngrams import NgramCounts
from ...evaluation.result import Result
from ...evaluation.trigrams import trigram
from ...text.corpora.corpus import Corpus
from .run_record import RunRecord, Unavailable

MOST_TOKENS = 50_000_000      # counted at most; a larger corpus is sampled in chunks
_STRETCH = 1 << 20


@dataclass(frozen=True)
class BaselineLosses(Result):
    """The baseline losses of a run; None for one that cannot be measured, or that has no meaning."""

    uniform: float | None                 # None if the run's loss is not that of words
    unigram: float | None
    bigram: float | None
    counted_tokens: int | None            # of the corpus, for the losses by frequencies
    trigram: float | None = None

    def levels(self) -> dict[str, float]:
        """Those that are known by name, from the highest to the lowest, as a rule."""
        known = {"uniform": self.uniform, "unigram": self.unigram, "bigram": self.bigram, "trigram": self.trigram}
        return {name: loss for name, loss in known.items() if loss is not None}


def _sampled_chunks(corpus: Corpus) -> Iterator[npt.NDArray[np.int64]]:
    """The training text, or every n-th chunk of a very long one."""
    every = -(-corpus.manifest.tokens // MOST_TOKENS)
    for number, tokens in enumerate(corpus.token_chunks("train", _STRETCH)):
        if number % every == 0:
            yield tokens


def baseline_losses(run: RunRecord) -> BaselineLosses:
    """The baseline losses on a run's corpus or, without the corpus, the ones stored in its config."""
    if not run.of_words:
        return BaselineLosses(None, None, None, None)
    try:
        return _measured(run, run.corpus)
    except MiniBertError as error:
        note = f"The baseline losses are read from {run.directory} instead of being measured: {error}"
        run.notes += [note] if note not in run.notes else []      # a report measures them twice
    except Unavailable:
        pass                                      # the checks that need the corpus report that it is missing
    return BaselineLosses(run.stored_baseline("uniform_loss") or log(run.vocab_size),
                          run.stored_baseline("unigram_loss"), None, None)


def _measured(run: RunRecord, corpus: Corpus) -> BaselineLosses:
    _, token, before = masked_tokens(run.heldout)
    second = tokens_before(run.heldout, 2)
    counts = NgramCounts(_sampled_chunks(corpus), max(run.vocab_size, corpus.manifest.vocab_size),
                         leave_out=not corpus.manifest.heldout_documents)
    return BaselineLosses(log(corpus.manifest.vocab_size), float(-np.log(counts.unigram(token)).mean()),
                          float(-np.log(counts.bigram(before, token)).mean()), int(counts.counts.sum()),
                          float(-np.log(trigram(counts, _sampled_chunks(corpus), second, before, token)).mean()))
