"""Random numbers keyed by what they are for.

Every draw in the package comes from `generator(seed, purpose, ...)`, for instance
`generator(0, "dropout", step, layer)`. The same key gives the same numbers on any number of
threads and after any interruption, so no generator state is ever saved.
"""

from hashlib import blake2b
from operator import index
from typing import SupportsIndex

import numpy as np

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
