"""GELU, the exact form: x times the normal distribution's Phi(x).

    y  = x Phi(x)                  Phi(x) = (1 + erf(x / sqrt 2)) / 2
    dx = dy (Phi(x) + x phi(x))    phi(x) = exp(-x^2 / 2) / sqrt(2 pi)      derivation: docs/math/gelu.md

NumPy has no erf. With z = |x| / sqrt 2, the upper tail is

    Phi(-|x|) = exp(-z^2) g(u) / (2 (1 + z)),      u = (z - 5/2) / (z + 5/2) in [-1, 1),

where g is smooth, so a short Chebyshev series gives Phi to the rounding error of either precision.
"""

from functools import cache
from math import pi, sqrt
from typing import Any

import numpy as np

from ..arrays import Array
from ..formulas import Formula
from ..gradcheck import Check
from ..registry import register
from . import Activation

# Chebyshev coefficients of g(u) = (1 + z) exp(z^2) erfc(z); tests/reference/erf_series.py prints them
_SERIES = [
    0.7639912664551598, -0.22668588709797102, 0.022145211846553815, 0.008064183098648542,
    -0.004034570727013601, 0.0007364259686819664, -8.871925000882748e-06, -2.0527358539706786e-05,
    1.8343843159445818e-06, 6.203520591590429e-07, -8.107271887057334e-08, -2.429647726362604e-08,
    2.883027040700468e-09, 1.1647494383207825e-09, -6.929366760316931e-11, -6.009609950624505e-11,
    -1.5117995441576946e-12, 2.9349972630891985e-12, 3.950060682285316e-13, -1.135269954185159e-13,
    -3.6956181437042435e-14, 1.3986980759307186e-15, 2.4050440329766055e-15, 2.974962289724813e-16,
    -9.993929179310454e-17, -3.6615440341058884e-17,
]
_TERMS = {np.dtype(np.float32): 11, np.dtype(np.float64): len(_SERIES)}
_CHUNK = 1 << 15          # elements: the temporaries of a chunk stay in the processor's cache


@cache
def _polynomial(dtype: np.dtype[np.floating[Any]]) -> Array:
    """The series as powers of u, highest first, as long as the precision can tell."""
    return np.polynomial.chebyshev.cheb2poly(_SERIES[: _TERMS[dtype]])[::-1].astype(dtype)


def normal_cdf(x: Array) -> tuple[Array, Array]:
    """Phi(x) and exp(-x^2 / 2), which the computation has at hand."""
    z = np.abs(x)
    z *= 1 / sqrt(2)
    bell = np.exp(-z * z)
    u = (z - 2.5) / (z + 2.5)
    leading, *rest = _polynomial(x.dtype)
    g = np.full_like(u, leading)
    for coefficient in rest:                           # Horner
        g *= u
        g += coefficient
    tail = g * bell
    tail /= 2 * (1 + z)
    return 0.5 + np.copysign(0.5 - tail, x), bell


def gelu_forward(x: Array, out: Array | None = None) -> tuple[Array, Array]:
    """x of any shape -> y of that shape, in the memory of `out` if that is given (it may be x's own).

    The cache is dy/dx: its parts are at hand here.
    """
    y = out if out is not None and out.flags.c_contiguous else np.empty(x.shape, x.dtype)
    slope = np.empty(x.shape, x.dtype)
    flat_x, flat_y, flat_slope = x.reshape(-1), y.reshape(-1), slope.reshape(-1)
    for start in range(0, x.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        xs = flat_x[part]
        cdf, bell = normal_cdf(xs)
        bell *= 1 / sqrt(2 * pi)
        bell *= xs
        np.add(cdf, bell, out=flat_slope[part])
        np.multiply(xs, cdf, out=flat_y[part])             # last: y may take the place of x
    return y, slope


def gelu_backward(dy: Array, slope: Array, out: Array | None = None) -> Array:
    """dy -> dx, in the memory of `out` if that is given (it may be dy's own)."""
    dx: Array = np.multiply(dy, slope, out=out)
    return dx


FORMULA = Formula("gelu", "{0} * Phi({0})", ("d{y} * (Phi({0}) + {0} * phi({0}))",),
                  where=("Phi(x) = (1 + erf(x / sqrt(2))) / 2",),
                  gradient_where=("phi(x) = exp(-x^2 / 2) / sqrt(2 pi)",))
CHECKS = [
    Check("near zero", lambda rng: [rng.standard_normal((4, 5))]),
    Check("in the tails", lambda rng: [3 * rng.standard_normal((4, 5))]),
    Check("not in C order", lambda rng: [rng.standard_normal((5, 4)).T]),
]

register("activation", "gelu")(Activation(gelu_forward, gelu_backward, FORMULA, CHECKS, extra=1))
