"""Softmax over the last axis.

    p_i = exp(x_i) / sum_j exp(x_j)                  each row sums to 1
"""

import numpy as np

from mini_bert.core.arrays import Array


def softmax_forward(x: Array) -> tuple[Array, Array]:
    """x (..., n) -> p (..., n), and p again for the backward."""
    exps = np.exp(x - x.max(axis=-1, keepdims=True))      # the shift prevents overflow and changes nothing else
    p = exps / exps.sum(axis=-1, keepdims=True)
    return p, p


def softmax_backward(dp: Array, p: Array) -> Array:
    """dp (..., n) -> dx (..., n)."""
    along_p = (p * dp).sum(axis=-1, keepdims=True)        # one number per row
    dx: Array = p * (dp - along_p)                        # dp_i / dx_j = p_i (delta_ij - p_j)
    return dx
