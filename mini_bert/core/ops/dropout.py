"""Dropout: each element is kept with probability q, about 1 - rate, and scaled so that the mean stays.

    m ~ Bernoulli(q), element by element        y = m x / q        dx = m dy / q

q is 1 - rate to the nearest 1/65536 above zero. Derivation: docs/math/dropout.md
"""

import numpy as np

from ..arrays import Array, BoolArray
from ..formulas import Formula
from ..gradcheck import Check

DropoutCache = tuple[BoolArray, float] | None


def dropout_forward(x: Array, rate: float, rng: np.random.Generator | None) -> tuple[Array, DropoutCache]:
    """x of any shape -> y of that shape. Without a generator, or at rate 0, y is x itself."""
    if rng is None or rate == 0:
        return x, None
    # sixteen random bits an element: four times cheaper than a double, and rate is met to 1e-5
    threshold = min(round(rate * 65536), 65535)
    keep = rng.integers(0, 65536, x.shape, np.uint16) >= threshold
    scale = 65536 / (65536 - threshold)
    y = x * keep
    y *= scale
    return y, (keep, scale)


def dropout_backward(dy: Array, cache: DropoutCache) -> Array:
    """dy -> dx, through the same elements."""
    if cache is None:
        return dy
    keep, scale = cache
    dx = dy * keep
    dx *= scale
    return dx


FORMULA = Formula("dropout", "m * {0} / q", ("m * d{y} / q",))
CHECKS = [
    Check("half dropped", lambda rng: [rng.standard_normal((4, 5))], rate=0.5, rng=7),
    Check("a tenth dropped", lambda rng: [rng.standard_normal((2, 3, 8))], rate=0.1, rng=8),
    Check("off", lambda rng: [rng.standard_normal((2, 3))], rate=0.5, rng=None),
]
