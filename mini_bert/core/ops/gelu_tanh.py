"""GELU, the tanh form: an approximation of x Phi(x) to about 5e-4.

    y  = x (1 + t) / 2                        t = tanh(c (x + a x^3)),  c = sqrt(2 / pi),  a = 0.044715
    dx = dy ((1 + t) / 2 + x (1 - t^2) c (1 + 3 a x^2) / 2)             derivation: docs/math/gelu_tanh.md
"""

from math import pi, sqrt

import numpy as np

from ..arrays import Array
from ..gradcheck import Check

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


CHECKS = [
    Check("near zero", lambda rng: [rng.standard_normal((4, 5))]),
    Check("in the tails", lambda rng: [3 * rng.standard_normal((4, 5))]),
]
