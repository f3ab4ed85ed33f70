"""The linear map of each row.

    y_nj = sum_i x_ni W_ij + b_j                     in matrices: y = x W + b
"""

from mini_bert.core.arrays import Array

Cache = tuple[Array, Array]


def linear_forward(x: Array, W: Array, b: Array) -> tuple[Array, Cache]:
    """x (N, in), W (in, out), b (out,) -> y (N, out), and what the backward needs."""
    y = x @ W + b
    return y, (x, W)


def linear_backward(dy: Array, cache: Cache) -> tuple[Array, Array, Array]:
    """dy (N, out) -> dx (N, in), dW (in, out), db (out,)."""
    x, W = cache
    db = dy.sum(axis=0)                     # the same b is added to every row
    dW = x.T @ dy                           # y_nj has the term x_ni W_ij: sum over the rows n
    dx = dy @ W.T                           # and over the outputs j
    return dx, dW, db
