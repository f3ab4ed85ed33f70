"""The linear map of each row.

    y_nj = sum_i x_ni W_ij + b_j                     in matrices: y = x W + b
"""

from mini_bert.core.arrays import Array

Cache = tuple[Array, Array]


def linear_forward(x: Array, W: Array, b: Array) -> tuple[Array, Cache]:
    """x (N, in), W (in, out), b (out,) -> y (N, out), and what the backward will need."""
    y = x @ W + b
    return y, (x, W)


def linear_backward(dy: Array, cache: Cache) -> tuple[Array, Array, Array]:
    """dy (N, out) -> dx (N, in), dW (in, out), db (out,)."""
    x, W = cache
    db = dy.sum(axis=0)                     # every row was given the same b
    dW = x.T @ dy                           # x_ni meets W_ij in y_nj: multiply, and sum over the rows n
    dx = dy @ W.T                           # the same meeting, summed over the outputs j
    return dx, dW, db
