"""Softmax over the last axis.

    p_i = exp(x_i) / sum_j exp(x_j)                  each row sums to one
"""

import numpy as np

from mini_bert.core.arrays import Array


def softmax_forward(x: Array) -> tuple[Array, Array]:
    """x (..., n) -> p (..., n), and p again for the backward."""
    exps = np.exp(x - x.max(axis=-1, keepdims=True))      # the shift changes nothing but overflow
    p = exps / exps.sum(axis=-1, keepdims=True)
    return p, p


def softmax_backward(dp: Array, p: Array) -> Array:
    """dp (..., n) -> dx (..., n)."""
    along_p = (p * dp).sum(axis=-1, keepdims=True)        # what raising all of a row's p would bring
    dx: Array = p * (dp - along_p)                        # p_i has the slope p_i (delta_ij - p_j) in x_j
    return dx
