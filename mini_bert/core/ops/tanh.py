"""The hyperbolic tangent.

    y  = tanh x
    dx = dy (1 - y^2)                                                      derivation: docs/math/tanh.md
"""

import numpy as np

from ..arrays import Array
from ..formulas import Formula
from ..gradcheck import Check


def tanh_forward(x: Array) -> tuple[Array, Array]:
    """x of any shape -> y of that shape."""
    y = np.tanh(x)
    return y, y


def tanh_backward(dy: Array, y: Array) -> Array:
    """dy -> dx."""
    return dy * (1 - y * y)


FORMULA = Formula("tanh", "tanh({0})", ("d{y} * (1 - {y}^2)",))
CHECKS = [Check("any", lambda rng: [rng.standard_normal((3, 4))])]
