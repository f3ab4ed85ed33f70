"""A shuffled order that is computed, not stored.

A permutation of 0 .. n-1 in which any place can be asked for directly, in memory that does not depend on n.
It is a Feistel network: the number is cut into two halves, and each round adds to one half a keyed mix of
the other, which can be undone and therefore is one to one. The network permutes a range of 4^k numbers;
a result beyond n is put through it again until it is within.
"""

import numpy as np
import numpy.typing as npt

from ..randomness import generator

_ROUNDS = 6


class Permutation:
    """The numbers 0 .. n-1 in an order that depends on the key alone."""

    def __init__(self, n: int, seed: int, *purpose: str | int):
        self.n = n
        self._half = max(1, (max(n - 1, 1).bit_length() + 1) // 2)         # bits of a half
        self._keys = generator(seed, "permutation", *purpose).integers(0, 2**64, _ROUNDS, np.uint64)

    def __len__(self) -> int:
        return self.n

    def __call__(self, places: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """The numbers that stand at these places."""
        x = np.asarray(places, np.uint64).copy()
        outside = np.ones(x.shape, bool)
        while outside.any():
            x[outside] = self._mix(x[outside])
            outside = x >= self.n
        return x.astype(np.int64)

    def _mix(self, x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        bits, mask = np.uint64(self._half), np.uint64((1 << self._half) - 1)
        left, right = x >> bits, x & mask
        for key in self._keys:
            z = (right + key) * np.uint64(0x9E3779B97F4A7C15)              # the mixing of splitmix64
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            left, right = right, left ^ ((z ^ (z >> np.uint64(31))) & mask)
        return (left << bits) | right
