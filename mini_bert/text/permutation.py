"""A shuffled order that is computed, not stored.

A permutation of 0 .. n-1 in which any place can be asked for directly, in memory that does not depend on n.
It is a Feistel network: the bits of a number are cut into two halves, and each round adds to one half a keyed
mix of the other, which can be undone and therefore is one to one. The network permutes a range of 2^k numbers,
less than twice n; a result beyond n is put through it again until it is within.
"""

import numpy as np
import numpy.typing as npt

from ..randomness import generator, splitmix64

_ROUNDS = 6                   # an even number


class Permutation:
    """The numbers 0 .. n-1 in an order that depends on the key alone."""

    def __init__(self, n: int, seed: int, *purpose: str | int):
        self.n = n
        bits = max(max(n - 1, 1).bit_length(), 2)
        self._bits = (bits // 2, bits - bits // 2)        # of the left and of the right half
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
        masks = [np.uint64((1 << bits) - 1) for bits in self._bits]
        left, right = x >> np.uint64(self._bits[1]), x & masks[1]
        for number, key in enumerate(self._keys):         # the halves change places, and after an even number are back
            left, right = right, left ^ (splitmix64(right + key) & masks[number % 2])
        return (left << np.uint64(self._bits[1])) | right
