"""Each token concatenated with its neighbours: the input of a convolution over the tokens.

    y_t  = [x_(t-p); ...; x_t; ...; x_(t+p)]                 width = 2 p + 1 rows of x, zeros beyond the ends
    dx_t = sum_j dy_(t+p-j), its j-th part                   a row is read by itself and by its neighbours

y W + b is then a convolution of this width: W holds one matrix for each place of the window. Derivation:
docs/math/neighbours.md
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ...arrays import Array
from ...formulas import Formula
from ...gradcheck import Check


def neighbours_forward(x: Array, width: int) -> tuple[Array, int]:
    """x (B, T, H), an odd width -> y (B, T, width H), the rows of a window in the order of the text."""
    B, T, H = x.shape
    p = width // 2
    padded = np.pad(x, ((0, 0), (p, p), (0, 0)))                                 # (B, T + 2 p, H)
    windows = sliding_window_view(padded, width, axis=1)                         # (B, T, H, width)
    return np.ascontiguousarray(windows.swapaxes(2, 3)).reshape(B, T, width * H), width


def neighbours_backward(dy: Array, width: int) -> Array:
    """dy (B, T, width H) -> dx (B, T, H)."""
    B, T, wide = dy.shape
    p, parts = width // 2, dy.reshape(B, T, width, wide // width)
    dpadded = np.zeros((B, T + 2 * p, wide // width), dy.dtype)
    for j in range(width):                                                       # part j of y_t is padded_(t+j)
        dpadded[:, j : j + T] += parts[:, :, j]
    return np.ascontiguousarray(dpadded[:, p : p + T])


FORMULA = Formula("neighbours", "beside({0})", ("apart(d{y})",))
CHECKS = [
    Check("three tokens", lambda rng: [rng.standard_normal((2, 4, 3))], width=3),
    Check("a window wider than the text", lambda rng: [rng.standard_normal((1, 2, 2))], width=7),
    Check("one token", lambda rng: [rng.standard_normal((2, 3, 2))], width=1),
]
