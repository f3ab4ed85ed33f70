"""Random numbers keyed by their purpose.

Every draw in the package comes from `generator(seed, purpose, ...)`, for instance `generator(0, "dropout", step,
layer)`. The same key gives the same numbers on any number of threads and after any interruption, so the state of a
generator is never saved.
"""

from hashlib import blake2b
from operator import index
from typing import SupportsIndex

import numpy as np
import numpy.typing as npt

from .errors import InputError


def generator(seed: SupportsIndex, *purpose: str | SupportsIndex) -> np.random.Generator:
    """A new generator for this seed and purpose; distinct keys give independent streams."""
    try:      # index() turns NumPy integers into Python's; repr keeps ("a", "b") and ("ab",) distinct, and 1 and "1"
        key = (index(seed), *(part if isinstance(part, str) else index(part) for part in purpose))
    except TypeError:
        raise InputError("A random key must be a whole number followed by strings or whole numbers, "
                         f"not {(seed, *purpose)}.") from None
    digest = blake2b(repr(key).encode(), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(digest, "little"))


def splitmix64(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The hash function of the generator splitmix64: nearby numbers give unrelated bits."""
    z = x * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def keyed_bits(rows: npt.NDArray[np.int64], columns: int, seed: SupportsIndex,
               *purpose: str | SupportsIndex) -> npt.NDArray[np.uint64]:
    """64 random bits for each row and column; those of a row depend only on its number and the key.

    A generator per row would do the same at twenty times the cost.
    """
    first, second = generator(seed, *purpose).integers(0, 2**64, 2, np.uint64)
    row_keys = splitmix64(rows.astype(np.uint64) + first)
    return splitmix64(row_keys[:, None] + splitmix64(np.arange(columns, dtype=np.uint64) + second))
