"""The rectifier: negative values become zero.

    y = max(x, 0), element by element
"""

import numpy as np

from mini_bert.core.arrays import Array


def relu_forward(x: Array) -> tuple[Array, Array]:
    """x of any shape -> y of that shape, and x for the backward."""
    return np.maximum(x, 0), x


def relu_backward(dy: Array, x: Array) -> Array:
    """dy of any shape -> dx of that shape."""
    return dy * (x > 0)                     # the slope is 1 above zero and 0 below
