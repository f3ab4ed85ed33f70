"""Pairs of sentences of which one half is not as in the text: what objectives on two sentences learn from.

The relation of a pair is 0 if its sentences are as they were in the text and 1 otherwise, as the heads of BERT and
ALBERT have it. It is drawn anew for every pair and epoch.
"""

import numpy as np

from ...errors import CorpusError
from ...randomness import keyed_bits
from ..corpora.corpus import Corpus
from ..masking import IntArray
from .sequences import PairSequences, SentenceSequences


class RandomPairs(PairSequences):
    """Half of the second sentences are random ones of another document, as in BERT."""

    def __init__(self, corpus: Corpus, split: str, T: int):
        super().__init__(corpus, split, T)
        self._all = SentenceSequences(corpus, split, T)
        self._sizes = self._all.count()                       # sentences of each document
        self._last = np.cumsum(self._sizes)                   # in the numbering of the split's sentences
        if self._sizes.max() == self._last[-1]:
            raise CorpusError(f"The split {split!r} of {corpus.directory} has one document; random sentences are of "
                              "another one, so at least two are needed.")

    def pairs(self, numbers: IntArray, epoch: int, seed: int) -> tuple[IntArray, IntArray, IntArray]:
        first, second, _ = super().pairs(numbers, epoch, seed)
        bits = keyed_bits(numbers, 2, seed, "pair", epoch)
        relation = (bits[:, 0] >> np.uint64(63)).astype(np.int64)
        owner = np.searchsorted(self.documents, self.locate(numbers)[0])
        sizes = self._sizes[owner]
        drawn = (bits[:, 1] % (self._last[-1] - sizes).astype(np.uint64)).astype(np.int64)
        drawn += np.where(drawn >= self._last[owner] - sizes, sizes, 0)   # all but the sentences of the same document
        documents, place = self._all.locate(drawn)
        other = self.corpus.documents[documents].astype(np.int64) + place
        return first, np.where(relation == 1, other, second), relation


class SwappedPairs(PairSequences):
    """Half of the pairs are in the wrong order, as in ALBERT: the second sentence comes first."""

    def pairs(self, numbers: IntArray, epoch: int, seed: int) -> tuple[IntArray, IntArray, IntArray]:
        first, second, _ = super().pairs(numbers, epoch, seed)
        relation = (keyed_bits(numbers, 1, seed, "pair", epoch)[:, 0] >> np.uint64(63)).astype(np.int64)
        return np.where(relation == 1, second, first), np.where(relation == 1, first, second), relation
