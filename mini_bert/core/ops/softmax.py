"""Softmax over the last axis.

    p_i  = exp(x_i - max x) / sum_j exp(x_j - max x)
    dx_i = p_i (dp_i - sum_j p_j dp_j)                                  derivation: docs/math/softmax.md
"""

import numpy as np

from ..arrays import Array
from ..formulas import Formula, Terms
from ..gradcheck import Check

_SAFE = 80.0                  # exp(-80) is a float32 with all its digits


def softmax_forward(x: Array, out: Array | None = None, shift: float | None = None) -> tuple[Array, Array]:
    """x (..., n) -> p (..., n), rows summing to one, in the memory of `out` if that is given (it may be x's own).

    An x of -inf gets exactly zero. A row of nothing else has no distribution: all of it is zero. `shift` is what
    `common_shift` gave before some x became -inf, if that is known.
    """
    shift = common_shift(x) if shift is None else shift
    if shift is None:                                  # each row its own; -inf - -inf would be no number
        top = np.maximum(x.max(axis=-1, keepdims=True), np.finfo(x.dtype).min)
        x = np.subtract(x, top, out=out)
    elif shift:
        x = np.subtract(x, shift, out=out)
    p: Array = np.exp(x, out=out)                      # the shift changes nothing but overflow
    total = (p @ np.ones(p.shape[-1], p.dtype))[..., None]
    p /= np.maximum(total, np.finfo(p.dtype).tiny)     # the sum is 0, or at least exp(-80)
    return p, p                                        # the output is all that the backward needs


def common_shift(x: Array) -> float | None:
    """A number that does for all rows as the largest x of each would, but for rounding; None if there is no such.

    It is found ten times faster than the largest of each row, and mostly it is 0, which needs no subtraction.
    """
    low, high = float(x.min(initial=np.inf)), float(x.max(initial=-np.inf))
    if max(-low, high) <= _SAFE / 2:
        return 0.0
    return high if high - low < _SAFE else None        # a row might be so far below the top that it would vanish


def still_serves(shift: float | None, x: Array) -> bool:
    """Does a common shift do for rows that may have been changed since it was found?"""
    top = x.max(axis=-1)
    return shift is not None and bool(((abs(top - shift) <= _SAFE) | (top == -np.inf)).all())


def softmax_backward(dp: Array, p: Array, out: Array | None = None) -> Array:
    """dp (..., n) -> dx (..., n), in the memory of `out` if that is given (it may be dp's own)."""
    along_p = np.vecdot(p, dp)[..., None]
    # p sums to one, so only the part of dp that is not common to the row can move x
    dx: Array = np.subtract(dp, along_p, out=out)
    dx *= p
    return dx


FORMULA = Formula("softmax", "softmax({0})", ("{y} * (d{y} - sum({y} * d{y}))",), terms=Terms.SOFTMAX,
                  signed=False, page="softmax",
                  back="Shares add up to one, so only differences within a row count: what all have in "
                       "common is taken off.",
                  why="Turns scores into shares: none is negative, and each row adds up to one.",
                  zero="its score is minus infinity, or so far below the largest of its row that the exponential is "
                       "smaller than the smallest number of this precision")
CHECKS = [
    Check("rows", lambda rng: [rng.standard_normal((3, 5))]),
    Check("far from zero", lambda rng: [500 + 2 * rng.standard_normal((2, 4))]),
    Check("four axes", lambda rng: [rng.standard_normal((2, 2, 3, 4))]),
]
