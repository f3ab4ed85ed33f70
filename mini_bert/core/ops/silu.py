"""SiLU (swish): the input, let through by its own sigmoid.

    y  = x s                   s = 1 / (1 + exp(-x))
    dx = dy (s + x s (1 - s))                                            derivation: docs/math/silu.md
"""

import numpy as np

from ..arrays import Array
from ..formulas import Formula
from ..gradcheck import Check
from ..registry import register
from . import Activation


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), as a tanh, which overflows nowhere."""
    s: Array = 0.5 * np.tanh(0.5 * x)
    s += 0.5
    return s


def silu_forward(x: Array, out: Array | None = None) -> tuple[Array, tuple[Array, Array]]:
    """x of any shape -> y of that shape. x is needed in the backward, so `out`, which may be x's own, is not used."""
    s = sigmoid(x)
    return x * s, (x, s)


def silu_backward(dy: Array, cache: tuple[Array, Array], out: Array | None = None) -> Array:
    """dy -> dx; `out` is not used."""
    x, s = cache
    # y = x s, and x enters both factors: ds/dx = s (1 - s)
    return dy * (s + x * s * (1 - s))


FORMULA = Formula("silu", "{0} * sigmoid({0})",
                  ("d{y} * (sigmoid({0}) + {0} * sigmoid({0}) * (1 - sigmoid({0})))",), page="silu",
                  back="Each number is multiplied by the slope of the curve at its input.",
                  why="Without a bend between them, two linear maps would be a single one; SiLU bends smoothly, as "
                      "GELU does, and is cheaper.")
CHECKS = [
    Check("near zero", lambda rng: [rng.standard_normal((4, 5))]),
    Check("in the tails", lambda rng: [4 * rng.standard_normal((4, 5))]),
]

register("activation", "silu")(Activation(silu_forward, silu_backward, FORMULA, CHECKS, extra=2))
