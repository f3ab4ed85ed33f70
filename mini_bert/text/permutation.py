"""A random permutation that is computed, not stored.

A Feistel network permutes 0 .. n-1 with direct access to any place, in constant memory. The bits of a number are split
into two halves; each round XORs one half with a keyed hash of the other, which is invertible, so the whole map is one
to one. The network permutes a range of 2^k numbers, less than 2n; a result of n or more goes through it again until it
is in range (cycle walking).
"""

import numpy as np
import numpy.typing as npt

from ..randomness import generator, splitmix64

_ROUNDS = 6                   # even, so that the halves end where they began


class Permutation:
    """The numbers 0 .. n-1 in an order that depends only on the seed and the purpose."""

    def __init__(self, n: int, seed: int, *purpose: str | int):
        self.n = n
        bits = max(max(n - 1, 1).bit_length(), 2)
        self._bits = (bits // 2, bits - bits // 2)        # of the left and the right half
        self._keys = generator(seed, "permutation", *purpose).integers(0, 2**64, _ROUNDS, np.uint64)

    def __len__(self) -> int:
        return self.n

    def __call__(self, places: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """The numbers at these places of the permutation."""
        x = np.asarray(places, np.uint64).copy()
        outside = np.ones(x.shape, bool)
        while outside.any():
            x[outside] = self._mix(x[outside])
            outside = x >= self.n
        return x.astype(np.int64)

    def _mix(self, x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        masks = [np.uint64((1 << bits) - 1) for bits in self._bits]
        left, right = x >> np.uint64(self._bits[1]), x & masks[1]
        for number, key in enumerate(self._keys):
            left, right = right, left ^ (splitmix64(right + key) & masks[number % 2])
        return (left << np.uint64(self._bits[1])) | right
