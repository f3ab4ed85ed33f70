"""Dropout: each element is kept with probability q, about 1 - rate, and scaled so that the mean stays.

    m ~ Bernoulli(q), element by element        y = m x / q        dx = m dy / q

q is 1 - rate to the nearest 1/65536 above zero. Derivation: docs/math/dropout.md
"""

import numpy as np
import numpy.typing as npt

from ..arrays import Array, BoolArray
from ..formulas import Formula
from ..gradcheck import Check

DropoutCache = tuple[BoolArray, float] | None


def dropout_forward(x: Array, rate: float, rng: np.random.Generator | None) -> tuple[Array, DropoutCache]:
    """x of any shape -> y of that shape. Without a generator, or at rate 0, y is x itself."""
    if rng is None or rate == 0:
        return x, None
    threshold = min(round(rate * 65536), 65535)                # of sixteen random bits: the rate is met to 1e-5
    keep = (_random_halves(x.size, rng) >= threshold).reshape(x.shape)
    scale = 65536 / (65536 - threshold)
    y = x * keep
    y *= scale
    return y, (keep, scale)


def _random_halves(size: int, rng: np.random.Generator) -> npt.NDArray[np.uint16]:
    """Sixteen random bits for each element, four from each word of 64: half the time of draws of uint16 (the same)."""
    words = rng.integers(0, 2**64, -(-size // 4), np.uint64).astype("<u8", copy=False)
    return words.view("<u2")[:size]


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
