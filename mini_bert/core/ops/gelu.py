"""GELU, the exact form: x times the normal distribution's Phi(x).

    y  = x Phi(x)                  Phi(x) = (1 + erf(x / sqrt 2)) / 2
    dx = dy (Phi(x) + x phi(x))    phi(x) = exp(-x^2 / 2) / sqrt(2 pi)      derivation: docs/math/gelu.md

NumPy has no erf. In float64, with z = |x| / sqrt 2, the upper tail is

    Phi(-|x|) = exp(-z^2) g(u) / (2 (1 + z)),      u = (z - 5/2) / (z + 5/2) in [-1, 1),

where g is smooth, so a short Chebyshev series gives Phi to the rounding error. In float32 less will do:

    Phi(x) = 1 / (1 + exp(x q(x^2)))

defines a smooth q, which a polynomial of degree 6 meets to all digits that float32 has for Phi.
"""

from functools import cache
from math import pi, sqrt

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
# Coefficients of q(s), from s^6 down; tests/reference/phi_logistic.py prints them
_Q = [
    -3.512346185254435e-09, 2.6452683437828e-07, -7.929490612061754e-06, 0.0001106123961628361,
    6.518993257723029e-05, -0.07266616913305182, -1.595769882923669,
]
# Elements: the temporaries of a chunk stay in the processor's cache. 2^14 costs a quarter more, a whole array twice.
_CHUNK = 1 << 16


def normal_cdf(x: Array) -> tuple[Array, Array]:
    """Phi(x) and exp(-x^2 / 2)."""
    return _single_cdf(x) if x.dtype == np.float32 else _double_cdf(x)


def _odds_against(x: Array) -> tuple[Array, Array]:
    """exp(x q(x^2)), which is (1 - Phi) / Phi, for float32; and x^2."""
    leading, second, *rest = _Q
    with np.errstate(over="ignore"):                   # far out q falls to -infinity, and Phi to its ends
        square = x * x
        q = square * leading                           # Horner
        q += second
        for coefficient in rest:
            q *= square
            q += coefficient
        q *= x
        return np.exp(q, out=q), square


def _single_cdf(x: Array) -> tuple[Array, Array]:
    """For float32: to 1.2e-7, as exact as the tail in float32, in 0.6 of its time."""
    cdf, square = _odds_against(x)
    cdf += 1
    np.divide(1, cdf, out=cdf)
    square *= -0.5
    return cdf, np.exp(square, out=square)


@cache
def _polynomial() -> Array:
    """The series as powers of u, highest first."""
    return np.polynomial.chebyshev.cheb2poly(_SERIES)[::-1]


def _double_cdf(x: Array) -> tuple[Array, Array]:
    """To 5e-16, by the tail."""
    z = np.abs(x)
    z *= 1 / sqrt(2)
    bell = np.exp(-z * z)
    u = (z - 2.5) / (z + 2.5)
    leading, *rest = _polynomial()
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


def gelu_value(x: Array, out: Array | None = None) -> Array:
    """y alone, for a pass without a backward: x / (1 + exp(x q(x^2))) in float32.

    It takes 0.64 of the time of y and its slope with AVX-512, 0.58 with AVX2 (4.7 of 7.4 ms, 5.3 of 9.1 ms for
    1024 x 1536 on a thread). One polynomial for Phi in the clipped x^2, with neither exp nor division, needs degree 13
    for these digits and takes 7.3 and 7.5 ms.
    """
    if x.dtype != np.float32:
        return gelu_forward(x, out)[0]
    y = out if out is not None and out.flags.c_contiguous else np.empty(x.shape, x.dtype)
    flat_x, flat_y = x.reshape(-1), y.reshape(-1)
    for start in range(0, x.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        below, _ = _odds_against(flat_x[part])
        below += 1
        np.divide(flat_x[part], below, out=flat_y[part])
    return y


def gelu_backward(dy: Array, slope: Array, out: Array | None = None) -> Array:
    """dy -> dx, in the memory of `out` if that is given (it may be dy's own)."""
    dx: Array = np.multiply(dy, slope, out=out)
    return dx


FORMULA = Formula("gelu", "{0} * Phi({0})", ("d{y} * (Phi({0}) + {0} * phi({0}))",),
                  where=("Phi(x) = (1 + erf(x / sqrt(2))) / 2",),
                  gradient_where=("phi(x) = exp(-x^2 / 2) / sqrt(2 pi)",), page="gelu",
                  back="Each number is multiplied by the slope of the curve at its input.",
                  why="Without a bend between them, two linear maps would be a single one; GELU bends smoothly, so its "
                      "slope has no jump.",
                  zero="its input is zero, or so far below zero that Phi of it rounds to zero")
CHECKS = [
    Check("near zero", lambda rng: [rng.standard_normal((4, 5))]),
    Check("in the tails", lambda rng: [3 * rng.standard_normal((4, 5))]),
    Check("not in C order", lambda rng: [rng.standard_normal((5, 4)).T]),
]

register("activation", "gelu")(Activation(gelu_forward, gelu_backward, FORMULA, CHECKS, extra=1, value=gelu_value))
