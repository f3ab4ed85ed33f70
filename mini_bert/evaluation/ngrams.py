"""Unigram and bigram counts of a text: baselines that know frequencies and nothing else.

    p(b)       = (n_b + 1) / (N + V)
    p(b | a)   = 0.7 n_ab / n_a + 0.3 p(b)        p(b) alone if a was never seen

When the text to predict is the counted text, each piece's own occurrence can be left out of the counts.
"""

from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..core.arrays import IntArray
from ..errors import DataError
from ..text.corpora.corpus import MANIFEST, Corpus
from ..text.corpora.sources import ReadingReport, find_sources, paragraphs
from ..text.tokenizer import Tokenizer

FloatArray = npt.NDArray[np.float64]
_SHARE_OF_BIGRAMS = 0.7       # close to the best value on our held-out text
_BLOCK, _MERGED = 1 << 20, 16             # characters tokenised at a time; blocks counted between merges


class NgramCounts:
    """Unigram and bigram counts of a text, as probabilities that are never zero.

    Set `leave_out` if the text to predict is the counted text.
    """

    def __init__(self, blocks: Iterable[IntArray], vocab_size: int, *, leave_out: bool = False):
        self.vocab_size, self.counts, self._own = vocab_size, np.zeros(vocab_size), int(leave_out)
        self.invalid_bytes = 0            # bytes of text files that were not UTF-8 and were replaced
        self._codes, self._times = np.zeros(0, np.int64), np.zeros(0)
        waiting = []
        for ids in blocks:
            self.counts += np.bincount(ids, minlength=vocab_size)
            whole = ids.astype(np.int64)
            waiting.append(np.unique(whole[:-1] * vocab_size + whole[1:], return_counts=True))
            if len(waiting) == _MERGED:
                self._merge(waiting)
                waiting = []
        self._merge(waiting)
        if not self.counts.any():
            raise DataError("There is no text to count.")

    def _merge(self, parts: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]) -> None:
        codes = np.concatenate([self._codes, *(codes for codes, _ in parts)])
        times = np.concatenate([self._times, *(times for _, times in parts)])
        self._codes, where = np.unique(codes, return_inverse=True)
        self._times = np.bincount(where, times, len(self._codes)).astype(np.float64)

    @classmethod
    def of(cls, names: Sequence[str | PathLike[str]], tokenizer: Tokenizer) -> "NgramCounts":
        """Count the training text of a prepared corpus, or text files and folders."""
        if len(names) == 1 and (Path(names[0]) / MANIFEST).is_file():
            corpus = Corpus(names[0])
            corpus.require_vocabulary(tokenizer)
            return cls(corpus.token_chunks("train"), len(tokenizer))
        report = ReadingReport()
        counted = cls(_tokenised([str(name) for name in names], tokenizer, report), len(tokenizer))
        counted.invalid_bytes = report.invalid
        return counted

    def unigram(self, ids: IntArray) -> FloatArray:
        """p(b) of each piece."""
        found: FloatArray = (self.without_own(self.counts[ids]) + 1) \
            / (self.counts.sum() - self._own + self.vocab_size)
        return found

    def bigram(self, before: IntArray, ids: IntArray) -> FloatArray:
        """p(b | a) of each piece after the piece `before` it."""
        times, seen = self.without_own(self.pair_times(before, ids)), self.without_own(self.counts[before])
        weight = np.where(seen > 0, _SHARE_OF_BIGRAMS, 0)
        mixed: FloatArray = weight * times / np.maximum(seen, 1) + (1 - weight) * self.unigram(ids)
        return mixed

    def pair_times(self, before: IntArray, ids: IntArray) -> FloatArray:
        """How often each piece comes after the piece `before` it."""
        if not len(self._codes):
            return np.zeros(len(ids))
        codes = before.astype(np.int64) * self.vocab_size + ids
        places = np.minimum(np.searchsorted(self._codes, codes), len(self._codes) - 1)
        return np.where(self._codes[places] == codes, self._times[places], 0.0)

    def without_own(self, counts: FloatArray) -> FloatArray:
        """Counts without the occurrence that is predicted, if the counted text is the one to predict."""
        return np.maximum(counts - self._own, 0)

    def log_likelihoods(self, tokenizer: Tokenizer, texts: Sequence[str]) -> dict[str, FloatArray]:
        """The unigram and bigram log-likelihood of each text; both use the unigram for its first piece."""
        ids, lengths = tokenizer.ids_array(texts)
        text = np.repeat(np.arange(len(texts)), lengths)
        unigram = np.log(self.unigram(ids))
        bigram = unigram.copy()
        inside = np.flatnonzero(text[1:] == text[:-1]) + 1
        bigram[inside] = np.log(self.bigram(ids[inside - 1], ids[inside]))
        return {name: np.bincount(text, logs, len(texts)).astype(np.float64)
                for name, logs in (("unigram", unigram), ("bigram", bigram))}


def _tokenised(names: list[str], tokenizer: Tokenizer, report: ReadingReport) -> Iterator[IntArray]:
    waiting, size = [], 0
    for paragraph in paragraphs(find_sources(names), report):
        if paragraph is not None:
            waiting.append(paragraph)
            size += len(paragraph)
        if size >= _BLOCK:
            yield tokenizer.ids_array(waiting)[0]
            waiting, size = [], 0
    if waiting:
        yield tokenizer.ids_array(waiting)[0]
