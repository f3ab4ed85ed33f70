"""GELU, the tanh form: an approximation of x Phi(x) to about 5e-4.

    y  = x (1 + t) / 2                        t = tanh(c (x + a x^3)),  c = sqrt(2 / pi),  a = 0.044715
    dx = dy ((1 + t) / 2 + x (1 - t^2) c (1 + 3 a x^2) / 2)             derivation: docs/math/gelu_tanh.md
"""

from math import pi, sqrt

import numpy as np

from ..arrays import Array
from ..formulas import Formula
from ..gradcheck import Check
from ..registry import register
from . import Activation

_C = sqrt(2 / pi)
_A = 0.044715


def gelu_tanh_forward(x: Array, out: Array | None = None) -> tuple[Array, tuple[Array, Array]]:
    """x of any shape -> y of that shape. x is needed in the backward, so `out`, which may be x's own, is not used."""
    t = np.tanh(_C * (x + _A * x * x * x))
    return 0.5 * x * (1 + t), (x, t)


def gelu_tanh_backward(dy: Array, cache: tuple[Array, Array], out: Array | None = None) -> Array:
    """dy -> dx; `out` is not used."""
    x, t = cache
    # t = tanh(c (x + a x^3))
    dt_dx = (1 - t * t) * _C * (1 + 3 * _A * x * x)
    # y = x (1 + t) / 2, and x enters both factors
    return dy * (0.5 * (1 + t) + 0.5 * x * dt_dx)


_T = ("t = tanh(sqrt(2 / pi) ({0} + 0.044715 {0}^3))",)
FORMULA = Formula("gelu tanh", "{0} * (1 + t) / 2",
                  ("d{y} * ((1 + t) / 2 + {0} * (1 - t^2) * sqrt(2 / pi) * (1 + 0.134145 {0}^2) / 2)",),
                  where=_T, gradient_where=_T, page="gelu_tanh",
                  back="Each number is multiplied by the slope of the curve at its input.",
                  why="Without a bend between them, two linear maps would be a single one; this is GELU with a tanh in "
                      "place of the normal distribution.",
                  zero="its input is zero, or so far below zero that tanh rounds to -1")
CHECKS = [
    Check("near zero", lambda rng: [rng.standard_normal((4, 5))]),
    Check("in the tails", lambda rng: [3 * rng.standard_normal((4, 5))]),
]

register("activation", "gelu_tanh")(Activation(gelu_tanh_forward, gelu_tanh_backward, FORMULA, CHECKS, extra=2))
