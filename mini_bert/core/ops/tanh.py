"""The hyperbolic tangent.

    y  = tanh x
    dx = dy (1 - y^2)                                                      derivation: docs/math/tanh.md
"""

import numpy as np

from ..arrays import Array
from ..formulas import Formula
from ..gradcheck import Check
from ..registry import register
from . import Activation


def tanh_forward(x: Array, out: Array | None = None) -> tuple[Array, Array]:
    """x of any shape -> y of that shape."""
    y = np.tanh(x, out=out)
    return y, y


def tanh_backward(dy: Array, y: Array, out: Array | None = None) -> Array:
    """dy -> dx."""
    return np.multiply(dy, 1 - y * y, out=out)


FORMULA = Formula("tanh", "tanh({0})", ("d{y} * (1 - {y}^2)",), page="tanh",
                  back="Each number is multiplied by the slope of the curve at its input.",
                  why="Keeps every number between -1 and 1.")
CHECKS = [Check("any", lambda rng: [rng.standard_normal((3, 4))])]

register("activation", "tanh")(Activation(tanh_forward, tanh_backward, FORMULA, CHECKS))
