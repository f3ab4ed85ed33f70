"""Random numbers keyed by what they are for.

Every draw in the package comes from `generator(seed, purpose, ...)`, for instance
`generator(0, "dropout", step, layer)`. The same key gives the same numbers on any number of
threads and after any interruption, so no generator state is ever saved.
"""

from hashlib import blake2b
from operator import index
from typing import SupportsIndex

import numpy as np
import numpy.typing as npt

from .errors import InputError


def generator(seed: SupportsIndex, *purpose: str | SupportsIndex) -> np.random.Generator:
    """A fresh generator for this seed and purpose; distinct keys give independent streams."""
    try:      # a NumPy integer is that number; repr keeps ("a", "b") and ("ab",) apart, and 1 and "1"
        key = (index(seed), *(part if isinstance(part, str) else index(part) for part in purpose))
    except TypeError:
        raise InputError("A random key is a whole number, then words or whole numbers, "
                         f"not {(seed, *purpose)}.") from None
    digest = blake2b(repr(key).encode(), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(digest, "little"))


def splitmix64(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Random bits from numbers: the mixing of splitmix64. Numbers that differ at all give unlike results."""
    z = x * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def keyed_bits(rows: npt.NDArray[np.int64], columns: int, seed: SupportsIndex,
               *purpose: str | SupportsIndex) -> npt.NDArray[np.uint64]:
    """64 random bits for each of (rows, columns): those of a row depend on its number and the key alone.

    A generator for each row would do the same, at twenty times the cost.
    """
    first, second = generator(seed, *purpose).integers(0, 2**64, 2, np.uint64)
    row_keys = splitmix64(rows.astype(np.uint64) + first)
    return splitmix64(row_keys[:, None] + splitmix64(np.arange(columns, dtype=np.uint64) + second))
