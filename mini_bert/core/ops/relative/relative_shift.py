"""Relative shift: from a column for each distance to a column for each token.

    y_ij  = x_i,(s_i + j)             j < width: row i reads a window of its columns, which begins at s_i
    dx_in = dy_i,(n - s_i)            where 0 <= n - s_i < width, else 0

Attention with relative positions computes one score for each query and distance. With the columns in the order of the
distance (key - query) = -(T-1), ..., T-1, the query at position p has the distance of key j in the column T-1-p + j,
so its window begins at s = T-1-p. Derivation: docs/math/relative_shift.md
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ...arrays import Array, IntArray
from ...formulas import Formula
from ...gradcheck import Check

RelativeShiftCache = tuple[tuple[int, ...], IntArray, int]


def relative_shift_forward(x: Array, starts: IntArray, width: int) -> tuple[Array, RelativeShiftCache]:
    """x (B, A, m, D), starts (1 or B, m), all in [0, D - width] -> y (B, A, m, width)."""
    y = sliding_window_view(x, width, axis=3)[_places(x.shape, starts)]
    return y, (x.shape, starts, width)


def relative_shift_backward(dy: Array, cache: RelativeShiftCache) -> Array:
    """dy (B, A, m, width) -> dx (B, A, m, D). A row reads no column twice, so nothing needs to be summed."""
    shape, starts, width = cache
    dx = np.zeros(shape, dy.dtype)
    sliding_window_view(dx, width, axis=3, writeable=True)[_places(shape, starts)] = dy
    return dx


def _places(shape: tuple[int, ...], starts: IntArray) -> tuple[IntArray, ...]:
    """Of all windows (B, A, m, D - width + 1, width) of x, which are views and no copies, those of its rows."""
    B, A, m, _ = shape
    return np.arange(B)[:, None, None], np.arange(A)[:, None], np.arange(m), starts[:, None]


FORMULA = Formula("relative shift", "window({0})", ("put(d{y})",))
CHECKS = [
    Check("all tokens", lambda rng: [rng.standard_normal((2, 2, 3, 5))], starts=np.array([[2, 1, 0]]), width=3),
    Check("some tokens of each sequence", lambda rng: [rng.standard_normal((2, 2, 2, 7))],
          starts=np.array([[3, 0], [2, 2]]), width=4),
    Check("one query", lambda rng: [rng.standard_normal((2, 1, 1, 5))], starts=np.array([[1]]), width=3),
]
