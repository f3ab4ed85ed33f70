"""Squared error: the distance of a predicted number from the right one. Summed over all of them.

    loss = sum (x - t)^2
    dx = dloss 2 (x - t)                                                 derivation: docs/math/squared_error.md
"""

import numpy as np

from ..arrays import Array, Targets
from ..formulas import Formula
from ..gradcheck import Check


def squared_error_forward(scores: Array, targets: Targets) -> tuple[float, Array]:
    """scores and targets (N, C) -> the summed loss."""
    difference = scores - targets.astype(scores.dtype)
    return float(np.einsum("nc,nc->", difference, difference, dtype=np.float64)), difference


def squared_error_backward(dloss: float, difference: Array) -> Array:
    """dloss, a number -> dscores (N, C)."""
    dscores: Array = (2 * dloss) * difference
    return dscores


FORMULA = Formula("squared error", "sum(({0} - t)^2)", ("2 * ({0} - t)",))
CHECKS = [
    Check("one number for each text", lambda rng: [rng.standard_normal((4, 1))],
          targets=np.array([[0.5], [-1.0], [2.0], [0.0]])),
    Check("several numbers", lambda rng: [3 * rng.standard_normal((2, 3))], targets=np.array([[1, 2, 3], [-4, 0, 5]])),
]
