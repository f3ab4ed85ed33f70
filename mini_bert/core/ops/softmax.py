"""Softmax over the last axis.

    p_i  = exp(x_i - max x) / sum_j exp(x_j - max x)
    dx_i = p_i (dp_i - sum_j p_j dp_j)                                  derivation: docs/math/softmax.md
"""

import numpy as np

from ..arrays import Array
from ..formulas import Formula, Terms
from ..gradcheck import Check

_SAFE = 80.0                  # exp(-80) is a float32 with all its digits


def softmax_forward(x: Array, out: Array | None = None) -> tuple[Array, Array]:
    """x (..., n) -> p (..., n), rows summing to one, in the memory of `out` if that is given (it may be x's own).

    An x of -inf gets exactly zero. A row of nothing else has no distribution: all of it is zero.
    """
    p: Array = np.subtract(x, _shift(x), out=out)
    np.exp(p, out=p)                                   # the shift changes nothing but overflow
    total = (p @ np.ones(p.shape[-1], p.dtype))[..., None]
    p /= np.maximum(total, np.finfo(p.dtype).tiny)     # the sum is 0, or at least exp(-80)
    return p, p                                        # the output is all that the backward needs


def _shift(x: Array) -> Array:
    """The largest x of each row; one number for all rows where that does as well, which is four times faster."""
    top: Array = np.asarray(x.max(initial=-np.inf))
    if top - x.min(initial=np.inf) >= _SAFE:           # a row might be so far below the top that it would vanish
        top = np.maximum(x.max(axis=-1, keepdims=True), np.finfo(x.dtype).min)     # -inf - -inf is no number
    return top


def softmax_backward(dp: Array, p: Array) -> Array:
    """dp (..., n) -> dx (..., n)."""
    dx = p * dp
    along_p = dx @ np.ones(p.shape[-1], p.dtype)       # (...,)
    # p sums to one, so only the part of dp that is not common to the row can move x
    dx -= p * along_p[..., None]
    return dx


FORMULA = Formula("softmax", "softmax({0})", ("{y} * (d{y} - sum({y} * d{y}))",), terms=Terms.SOFTMAX,
                  signed=False)
CHECKS = [
    Check("rows", lambda rng: [rng.standard_normal((3, 5))]),
    Check("far from zero", lambda rng: [500 + 2 * rng.standard_normal((2, 4))]),
    Check("four axes", lambda rng: [rng.standard_normal((2, 2, 3, 4))]),
]
