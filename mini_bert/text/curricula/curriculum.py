"""A curriculum by difficulty: the sequences are sorted, and a step draws from the easiest of them.

    share(t) = start + (1 - start) pacing(t / until), 1 from `until` on            t: the share of the run that is done
    n = ceil(share(t) N)                                                           of N sequences, the easiest n
    place p of an epoch has the sequence of rank floor(P(p) n / N)                 P: the epoch's permutation of the N

So every place leads to a sequence of the easiest n, to each of them equally often, and the batch of any step is
computed directly. When n = N the ranks are P itself, and each sequence comes once in an epoch. Derivation:
docs/math/curricula.md
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, isfinite
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ...errors import ConfigError
from ...randomness import generator, splitmix64
from ..permutation import Permutation

IntArray = npt.NDArray[np.int64]
Difficulty = Callable[[IntArray], npt.ArrayLike]      # numbers of sequences -> how hard each of them is
Pacing = Callable[[float], float]                     # share of the pacing's time -> share of the way from start to all

_CHUNK = 8192         # sequences that are measured together
_SAMPLE = 4096        # places of the order at which the mean length of all before them is known


class Measured(Protocol):
    """What is sorted: numbered sequences whose lengths are known."""

    def __len__(self) -> int: ...
    def lengths(self, numbers: IntArray) -> IntArray: ...


@dataclass(frozen=True)
class Curriculum:
    """Which share of the sequences is open, and by what they are sorted: `difficulty` is made from the sequences."""

    difficulty: Callable[[Any], Difficulty]
    pacing: Pacing
    start: float = 0.2
    until: float = 0.6

    def __post_init__(self) -> None:
        for name, value in (("start", self.start), ("until", self.until)):
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
                raise ConfigError(f"curriculum: {name} must be a share above 0 and at most 1, not {value}.")
        for progress in np.linspace(0, 1, 11).tolist():
            if not (isfinite(share := self.pacing(progress)) and -1e-9 <= share <= 1 + 1e-9):
                raise ConfigError(f"curriculum: the pacing must stay between 0 and 1; at {progress:.1f} it is {share}.")

    def share(self, done: float) -> float:
        """The share of the sequences that is open when this share of the run is done."""
        if done >= self.until:
            return 1.0
        return min(self.start + (1 - self.start) * max(self.pacing(done / self.until), 0.0), 1.0)


class Order:
    """The order of sequences in each epoch, directly accessible; with a curriculum, among those that are open.

    The sequences of a curriculum are sorted when the first of them are drawn; four bytes a sequence are kept.
    """

    def __init__(self, sequences: Measured, curriculum: Curriculum | None, seed: int):
        self.sequences, self.curriculum, self.seed, self.size = sequences, curriculum, seed, len(sequences)
        self._difficulty = None if curriculum is None else curriculum.difficulty(sequences)
        self._sorted: npt.NDArray[Any] | None = None
        self._means: tuple[IntArray, npt.NDArray[np.float64]] | None = None

    def pool(self, done: float, least: int) -> int:
        """The number of sequences that are open when this share of the run is done; at least those of one batch."""
        if self.curriculum is None:
            return self.size
        return min(self.size, max(ceil(self.curriculum.share(done) * self.size), least))

    def draw(self, epoch: int, first: int, count: int, pool: int, wanted: int | None = None) -> IntArray:
        """The sequences at `count` positions of an epoch from `first` on, or to its end, if that many are available.

        With a curriculum there may be another number of them, `wanted`: more come from further orders of the epoch.
        """
        places = np.arange(first, min(first + count, self.size))
        if self._difficulty is None:
            return Permutation(self.size, self.seed, "epoch", epoch)(places)
        wanted, found = len(places) if wanted is None else wanted, list[IntArray]()
        for again in range(-(-wanted // len(places))):
            order = Permutation(self.size, self.seed, "epoch", epoch, *([again] if again else []))
            found.append(order(places) * pool // self.size)
        ranks = np.concatenate(found)[:wanted]
        return self.by_difficulty()[ranks].astype(np.int64)

    def by_difficulty(self) -> npt.NDArray[Any]:
        """The numbers of all sequences, the easiest first. The order of equally hard ones is drawn, and not that of
        the text."""
        if self._sorted is None:
            lots = splitmix64(np.arange(self.size, dtype=np.uint64)
                              + generator(self.seed, "equally hard").integers(0, 2**64, dtype=np.uint64))
            self._sorted = np.lexsort((lots, self._scores())).astype(np.min_scalar_type(max(self.size - 1, 0)))
        return self._sorted

    def _scores(self) -> npt.NDArray[np.float32]:
        assert self._difficulty is not None
        scores = np.empty(self.size, np.float32)
        for start in range(0, self.size, _CHUNK):
            numbers = np.arange(start, min(start + _CHUNK, self.size))
            found = np.asarray(self._difficulty(numbers), np.float64)
            if found.shape != numbers.shape or not np.isfinite(found).all():
                raise ConfigError(f"curriculum: a difficulty must give a finite number for each of {len(numbers)} "
                                  f"sequences; it gave an array of shape {found.shape}"
                                  f"{', not all of it finite' if found.shape == numbers.shape else ''}.")
            scores[start : start + len(numbers)] = found
        return scores

    def mean_length(self, pool: int) -> float:
        """About the mean length of the easiest `pool` sequences."""
        if self._means is None:
            ranks = np.unique(np.linspace(0, self.size - 1, min(self.size, _SAMPLE)).astype(np.int64))
            lengths = self.sequences.lengths(self.by_difficulty()[ranks].astype(np.int64))
            self._means = ranks, np.cumsum(lengths) / np.arange(1, len(ranks) + 1)
        ranks, means = self._means
        return float(means[np.searchsorted(ranks, pool - 1, "right") - 1])


def once(numbers: IntArray) -> IntArray:
    """The numbers without repetitions, each at its first place."""
    _, first = np.unique(numbers, return_index=True)
    return numbers[np.sort(first)]
