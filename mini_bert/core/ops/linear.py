"""The linear map of each row.

    y  = x W + b
    dx = dy W^T        dW = x^T dy        db = sum over rows of dy        derivation: docs/math/linear.md
"""

import numpy as np

from ..arrays import Array
from ..gradcheck import Check

LinearCache = tuple[Array, Array, bool]


def linear_forward(x: Array, W: Array, b: Array | None = None) -> tuple[Array, LinearCache]:
    """x (N, in), W (in, out), b (out,) -> y (N, out)."""
    y = x @ W
    if b is not None:
        y += b
    return y, (x, W, b is not None)


def linear_backward(dy: Array, cache: LinearCache, out: Array | None = None) -> tuple[Array, Array, Array | None]:
    """dy (N, out) -> dx (N, in), dW (in, out), db (out,), the last one None without a bias.

    dW is computed into `out`, if that is given.
    """
    x, W, has_bias = cache
    # y += b: every row got the same b
    db = dy.sum(axis=0) if has_bias else None
    # y = x W: x_ni meets W_ij in y_nj alone
    if W.flags.c_contiguous:
        dW = np.matmul(x.T, dy, out=out)
    else:                     # a transposed view, as of tied embeddings: dW in the same memory order
        dW = np.matmul(dy.T, x, out=None if out is None else out.T).T
    dx = dy @ W.T
    return dx, dW, db


CHECKS = [
    Check("rows", lambda rng: [rng.standard_normal(s) for s in ((4, 3), (3, 5), (5,))]),
    Check("transposed W", lambda rng: [rng.standard_normal((4, 3)), rng.standard_normal((5, 3)).T]),
    Check("no bias", lambda rng: [rng.standard_normal(s) for s in ((4, 3), (3, 2))]),
    Check("one row", lambda rng: [rng.standard_normal(s) for s in ((1, 3), (3, 2), (2,))]),
]
