"""The linear map of each row.

    y  = x W + b
    dx = dy W^T        dW = x^T dy        db = sum over rows of dy        derivation: docs/math/linear.md
"""

import numpy as np

from ..arrays import Array
from ..formulas import Formula, Terms
from ..gradcheck import Check

LinearCache = tuple[Array, Array, bool]
_WIDEST = 8192


def linear_forward(x: Array, W: Array, b: Array | None = None) -> tuple[Array, LinearCache]:
    """x (N, in), W (in, out), b (out,) -> y (N, out)."""
    y = _product(x, W)
    if b is not None:
        y += b
    return y, (x, W, b is not None)


def _product(x: Array, W: Array) -> Array:
    """x W. BLAS copies W in panels as wide as they may be; for a vocabulary's W narrower ones save 30 MB per thread."""
    if W.shape[1] <= _WIDEST:
        return x @ W
    y = np.empty((len(x), W.shape[1]), x.dtype)
    for start in range(0, W.shape[1], _WIDEST):
        np.matmul(x, W[:, start : start + _WIDEST], out=y[:, start : start + _WIDEST])
    return y


def linear_backward(dy: Array, cache: LinearCache, *,
                    with_dW: bool = True) -> tuple[Array, Array | None, Array | None]:
    """dy (N, out) -> dx (N, in), dW (in, out), db (out,), the last one None without a bias.

    Without `with_dW` that is left to the caller, who has x and dy, and None is returned for it.
    """
    x, W, has_bias = cache
    # y += b: every row got the same b
    db = np.ones(len(dy), dy.dtype) @ dy if has_bias else None     # a sum over rows as a product: 2.5x faster
    # y = x W: x_ni meets W_ij in y_nj alone
    dW = x.T @ dy if with_dW else None
    dx = dy @ W.T
    return dx, dW, db


FORMULA = Formula("linear", "{0} {W} + {b}", ("d{y} {W}^T",), {"W": "{0}^T d{y}", "b": "sum_t(d{y})"},
                  terms=Terms.LINEAR, page="linear",
                  back="The gradient goes back through the same weights, the other way round.",
                  why="Each output is a weighted sum of all features of its token; the weights are what is learned.")
CHECKS = [
    Check("rows", lambda rng: [rng.standard_normal(s) for s in ((4, 3), (3, 5), (5,))]),
    Check("transposed W", lambda rng: [rng.standard_normal((4, 3)), rng.standard_normal((5, 3)).T]),
    Check("no bias", lambda rng: [rng.standard_normal(s) for s in ((4, 3), (3, 2))]),
    Check("one row", lambda rng: [rng.standard_normal(s) for s in ((1, 3), (3, 2), (2,))]),
]
