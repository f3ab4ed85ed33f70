"""Random numbers keyed by what they are for.

Every draw in the package comes from `generator(seed, purpose, ...)`, for instance
`generator(0, "dropout", step, layer)`. The same key gives the same numbers on any number of
threads and after any interruption, so no generator state is ever saved.
"""

from hashlib import blake2b

import numpy as np


def generator(seed: int, *purpose: str | int) -> np.random.Generator:
    """A fresh generator for this seed and purpose; distinct keys give independent streams."""
    # repr separates the parts without ambiguity: ("a", "b") and ("ab",) differ, and so do 1 and "1"
    digest = blake2b(repr((int(seed), *purpose)).encode(), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(digest, "little"))
