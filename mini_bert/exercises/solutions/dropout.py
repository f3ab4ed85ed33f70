"""Dropout: each element is kept with probability 1 - rate, and scaled so that the mean stays the same.

    keep = 1 with probability q = 1 - rate, else 0        y = keep x / q
"""

import numpy as np

from mini_bert.core.arrays import Array, BoolArray

Cache = tuple[BoolArray, float]


def dropout_forward(x: Array, rate: float, rng: np.random.Generator) -> tuple[Array, Cache]:
    """x of any shape -> y of that shape; the cache holds keep, of that shape, and q."""
    keep, q = rng.random(x.shape) >= rate, 1 - rate
    return x * keep / q, (keep, q)


def dropout_backward(dy: Array, cache: Cache) -> Array:
    """dy of any shape -> dx of that shape."""
    keep, q = cache
    return dy * keep / q                    # each y is a constant times its own x
