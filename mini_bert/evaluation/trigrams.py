"""The trigram baseline: the frequency of a piece after the two before it, mixed with its bigram probability.

    p(c | a, b) = w n_abc / n_ab + (1 - w) p(c | b)        w = n_ab / (n_ab + 3 d_ab)

d_ab is the number of different pieces that follow a b (Witten and Bell 1991, with a factor): a pair that is always
followed by the same piece is trusted sooner than one that can be followed by any. Only the followers of pairs that are
asked for are counted, so that the memory does not grow with the text.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from ..core.arrays import IntArray
from .ngrams import FloatArray, NgramCounts

_FACTOR = 3.0                 # the best of 1, 2, 3 and 4 on half a million to twenty million tokens of Wikipedia


def trigram(counts: NgramCounts, blocks: Iterable[IntArray], first: IntArray, second: IntArray,
            third: IntArray) -> FloatArray:
    """p(c | a, b) of each piece `third` after `first` and `second`; `blocks` is the text that `counts` has counted."""
    V = counts.vocab_size
    pairs, of_pair = np.unique(first.astype(np.int64) * V + second, return_inverse=True)
    codes, times = _followers(blocks, pairs, V)
    wanted = of_pair * V + third
    places = np.minimum(np.searchsorted(codes, wanted), max(len(codes) - 1, 0))
    known = np.where(codes[places] == wanted, times[places], 0.0) if len(codes) else np.zeros(len(wanted))
    seen = np.bincount(codes // V, times, len(pairs))[of_pair]
    own = known - counts.without_own(known)                       # 1 where the occurrence itself is left out
    followers = np.bincount(codes // V, minlength=len(pairs))[of_pair]
    different: FloatArray = followers - ((known == 1) & (own == 1)).astype(np.float64)
    together, seen = known - own, (seen - own).astype(np.float64)
    weight = seen / np.maximum(seen + _FACTOR * different, 1)
    mixed: FloatArray = weight * together / np.maximum(seen, 1) + (1 - weight) * counts.bigram(second, third)
    return mixed


def _followers(blocks: Iterable[IntArray], pairs: npt.NDArray[np.int64],
               V: int) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """Codes (number of the pair) V + follower, in order, and how often each occurs."""
    codes, times = np.zeros(0, np.int64), np.zeros(0)
    for ids in blocks:
        whole = ids.astype(np.int64)
        here = whole[:-2] * V + whole[1:-1]
        places = np.minimum(np.searchsorted(pairs, here), len(pairs) - 1)
        there = np.flatnonzero(pairs[places] == here)
        found, count = np.unique(places[there] * V + whole[there + 2], return_counts=True)
        codes, where = np.unique(np.concatenate([codes, found]), return_inverse=True)
        times = np.bincount(where, np.concatenate([times, count]), len(codes)).astype(np.float64)
    return codes, times
