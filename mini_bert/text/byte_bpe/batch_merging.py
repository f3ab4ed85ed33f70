"""Merging the bytes of many words at once, with the pieces of merging.py.

The symbols of all words are in one array. In a round every word merges one pair, its own pair of the lowest rank, the
leftmost of several; words without such a pair are finished and leave the array.

    merges  0: h e   1: t he   2: o t         t h e | o t | h e n       symbols
                                              . 0   | 2   | 0           ranks of the pairs that begin there
                                              t he  | ot  | he n        after one round

The rank of a pair is found by bisection in the sorted list of all pairs, and only for pairs that a merge has changed.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ..tokenizer import ID
from .merging import Merger

_NEVER = 1 << 30              # the rank of a pair that is not merged
_LOW = (1 << 32) - 1
Integers = npt.NDArray[np.int64]


class BatchMerger:
    """The merges of a Merger, for many words at once."""

    def __init__(self, merger: Merger):
        pairs = np.array(list(merger.rank), np.int64).reshape(-1, 2)
        keys = _joined(pairs[:, 0], pairs[:, 1])
        order = np.argsort(keys)
        self._keys = np.append(keys[order], np.iinfo(np.int64).max)       # the last stands for pairs after all others
        self._ranks = np.append(np.array(list(merger.rank.values()), np.int64)[order], _NEVER)
        self._made, self._symbols = np.array(merger.made, np.int64), np.array(merger.symbols, np.int64)

    def __call__(self, words: Sequence[bytes]) -> list[bytes]:
        """The ids of each word, as the bytes of an array."""
        symbols = self._symbols[np.frombuffer(b"".join(words), np.uint8)]
        word = np.repeat(np.arange(len(words)), [len(data) for data in words])
        finished = list(self._rounds(symbols[symbols >= 0], word[symbols >= 0]))      # others are left out
        owner, ids = (np.concatenate(parts) for parts in zip(*finished, strict=True))
        ends = np.cumsum(np.bincount(owner, minlength=len(words))) * ID.itemsize
        data = ids[np.argsort(owner, kind="stable")].astype(ID).tobytes()
        return [data[start:end] for start, end in pairwise([0, *ends.tolist()])]

    def _rounds(self, symbols: Integers, word: Integers) -> Iterator[tuple[Integers, Integers]]:
        """Merge until nothing is left to merge; gives (word, symbols) of the words that each round finds finished."""
        ranks = np.full(len(symbols), _NEVER)
        self._look_up(ranks, symbols, word, np.arange(len(symbols)))
        while len(symbols):
            starts = np.flatnonzero(np.diff(word, prepend=-1))
            lowest = np.minimum.reduceat(_joined(ranks, np.arange(len(ranks))), starts)   # of each word, the leftmost
            merges = lowest >> 32 < _NEVER
            kept = np.repeat(merges, np.diff(starts, append=len(symbols)))
            yield word[~kept], symbols[~kept]
            places = lowest[merges] & _LOW
            symbols[places] = self._made[ranks[places]]
            ranks[places] = _NEVER
            kept[places + 1] = False
            places = np.cumsum(kept)[places] - 1              # where they are without the symbols that have gone
            symbols, word, ranks = symbols[kept], word[kept], ranks[kept]
            self._look_up(ranks, symbols, word, np.concatenate([places - 1, places]))
        yield word, symbols

    def _look_up(self, ranks: Integers, symbols: Integers, word: Integers, places: Integers) -> None:
        """Set the ranks of the pairs that begin at these places."""
        places = places[(places >= 0) & (places < len(symbols) - 1)]
        places = places[word[places] == word[places + 1]]
        keys = _joined(symbols[places], symbols[places + 1])
        found = np.searchsorted(self._keys, keys)
        ranks[places] = np.where(self._keys[found] == keys, self._ranks[found], _NEVER)


def _joined(high: Any, low: Any) -> Any:
    """Two numbers below 2**31 in one, ordered by the first."""
    return high << 32 | low
