"""Binary cross-entropy: each score says on its own whether its label holds. Summed over all of them.

    p = sigmoid(x)         loss = sum (-t ln p - (1 - t) ln(1 - p)) = sum (max(x, 0) - x t + ln(1 + exp(-|x|)))
    dx = dloss (p - t)                                            derivation: docs/math/binary_cross_entropy.md
"""

import numpy as np

from ..arrays import Array, Targets
from ..formulas import Formula
from ..gradcheck import Check
from .silu import sigmoid


def binary_cross_entropy_forward(scores: Array, targets: Targets) -> tuple[float, tuple[Array, Array]]:
    """scores and targets (N, C), the targets from 0 to 1 -> the summed loss."""
    t = targets.astype(scores.dtype)
    losses = np.maximum(scores, 0) - scores * t + np.log1p(np.exp(-np.abs(scores)))
    return float(losses.sum(dtype=np.float64)), (sigmoid(scores), t)


def binary_cross_entropy_backward(dloss: float, cache: tuple[Array, Array]) -> Array:
    """dloss, a number -> dscores (N, C)."""
    p, t = cache
    dscores: Array = dloss * (p - t)          # the slope of max(x, 0) + ln(1 + exp(-|x|)) is the sigmoid
    return dscores


FORMULA = Formula("binary cross entropy", "sum(max({0}, 0) - {0} * t + log(1 + exp(-abs({0}))))",
                  ("sigmoid({0}) - t",))
CHECKS = [
    Check("labels", lambda rng: [rng.standard_normal((3, 4))], targets=np.array([[0, 1, 1, 0], [1, 1, 0, 0], [0] * 4])),
    Check("shares, and far from zero", lambda rng: [4 * rng.standard_normal((2, 3))],
          targets=np.array([[0.25, 1, 0], [0.5, 0, 0.75]])),
]
