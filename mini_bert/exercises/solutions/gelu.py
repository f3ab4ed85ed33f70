"""GELU, the exact form: x times the probability that a standard normal variable is below x.

    y = x Phi(x)        Phi(x) = (1 + erf(x / sqrt 2)) / 2

The slope of Phi is the density of that distribution, phi(x) = exp(-x^2 / 2) / sqrt(2 pi).
"""

from math import erf, pi, sqrt

import numpy as np

from mini_bert.core.arrays import Array

Cache = tuple[Array, Array]
_erf = np.vectorize(erf, otypes=[np.float64])     # NumPy has no erf


def gelu_forward(x: Array) -> tuple[Array, Cache]:
    """x of any shape -> y of that shape; the cache holds x and Phi(x)."""
    cdf = (1 + _erf(x / sqrt(2))) / 2
    return x * cdf, (x, cdf)


def gelu_backward(dy: Array, cache: Cache) -> Array:
    """dy of any shape -> dx of that shape."""
    x, cdf = cache
    density = np.exp(-x * x / 2) / sqrt(2 * pi)
    return dy * (cdf + x * density)         # the product rule
