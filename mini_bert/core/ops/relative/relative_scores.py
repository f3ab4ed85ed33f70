"""Scores of tokens with the vectors of distances: a row of x meets at column j the vector of its distance to token j.

    y_ij  = x_i . r_(s_i + j)                            x (m, d), r (D, d): a vector for each distance
    dx_i  = sum_j dy_ij r_(s_i + j)
    dr_n  = sum over i, j with s_i + j = n of dy_ij x_i

All products x r^T are computed, one column a distance, and read along their diagonals (relative_shift.py): the sum
over diagonals in dr is then a product of matrices too. Derivation: docs/math/relative_scores.md
"""

import numpy as np

from ...arrays import Array, IntArray
from ...formulas import Formula
from ...gradcheck import Check
from .relative_shift import RelativeShiftCache, relative_shift_backward, relative_shift_forward

RelativeScoresCache = tuple[Array, Array, RelativeShiftCache]


def relative_scores_forward(x: Array, r: Array, starts: IntArray, width: int) -> tuple[Array, RelativeScoresCache]:
    """x (B, A, m, d), r (A, D, d), or (1, D, d) for all heads, starts (1 or B, m) -> y (B, A, m, width)."""
    products = x @ r.transpose(0, 2, 1)                        # (B, A, m, D)
    y, shift = relative_shift_forward(products, starts, width)
    return y, (x, r, shift)


def relative_scores_backward(dy: Array, cache: RelativeScoresCache) -> tuple[Array, Array]:
    """dy (B, A, m, width) -> dx (B, A, m, d), dr like r."""
    x, r, shift = cache
    dproducts = relative_shift_backward(dy, shift)             # y = windows of the products
    dx = dproducts @ r                                         # products = x r^T
    dr = np.zeros((x.shape[1], *r.shape[1:]), r.dtype)
    for of_one, x_of_one in zip(dproducts, x, strict=True):    # r is the same for all sequences
        dr += of_one.transpose(0, 2, 1) @ x_of_one
    return dx, dr if len(r) > 1 else dr.sum(axis=0, keepdims=True)


FORMULA = Formula("relative scores", "window({0} {1}^T)", ("put(d{y}) {1}", "put(d{y})^T {0}"))
CHECKS = [
    Check("all tokens", lambda rng: [rng.standard_normal((2, 2, 3, 4)), rng.standard_normal((2, 5, 4))],
          starts=np.array([[2, 1, 0]]), width=3),
    Check("some tokens of each sequence",
          lambda rng: [rng.standard_normal((2, 2, 2, 3)), rng.standard_normal((2, 7, 3))],
          starts=np.array([[3, 0], [2, 1]]), width=4),
    Check("one table for all heads", lambda rng: [rng.standard_normal((2, 3, 3, 2)), rng.standard_normal((1, 5, 2))],
          starts=np.array([[2, 1, 0]]), width=3),
]
