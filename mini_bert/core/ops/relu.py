"""The rectifier.

    y  = max(x, 0)
    dx = dy where y > 0, else 0                                            derivation: docs/math/relu.md
"""

import numpy as np

from ..arrays import Array
from ..formulas import Formula
from ..gradcheck import Check
from ..registry import register
from . import Activation


def relu_forward(x: Array, out: Array | None = None) -> tuple[Array, Array]:
    """x of any shape -> y of that shape, in the memory of `out` if that is given (it may be x's own)."""
    y = np.maximum(x, np.zeros(x.shape[-1:], x.dtype), out=out)     # with a row of zeros; a single 0 is slower
    return y, y                                        # y > 0 exactly where x > 0


def relu_backward(dy: Array, y: Array, out: Array | None = None) -> Array:
    """dy -> dx, in the memory of `out` if that is given (it may be dy's own). At x = 0, where the slope jumps, 0."""
    dx: Array = np.multiply(dy, y > 0, out=out)
    return dx


FORMULA = Formula("relu", "max({0}, 0)", ("d{y} * [{0} > 0]",), kink=0.0, page="relu",
                  back="Passes on where the input was above zero, and stops elsewhere.",
                  why="Without a bend between them, two linear maps would be a single one; ReLU keeps what is above "
                      "zero.",
                  zero="its input is not above zero, and ReLU gives zero for any such input")
CHECKS = [
    # kept a little away from the kink, where a difference quotient would straddle two slopes
    Check("both sides", lambda rng: [rng.choice([-1.0, 1.0], (4, 5)) * rng.uniform(0.1, 2, (4, 5))]),
]

register("activation", "relu")(Activation(relu_forward, relu_backward, FORMULA, CHECKS))
