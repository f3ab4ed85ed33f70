"""Embedding: each id fetches its row of a table.

    y_n = W[ids_n]
"""

import numpy as np

from mini_bert.core.arrays import Array, IntArray

Cache = tuple[IntArray, tuple[int, ...]]


def embedding_forward(W: Array, ids: IntArray) -> tuple[Array, Cache]:
    """W (V, H), ids (N,), the same id more than once if a word is repeated -> y (N, H)."""
    return W[ids], (ids, W.shape)


def embedding_backward(dy: Array, cache: Cache) -> Array:
    """dy (N, H) -> dW (V, H)."""
    ids, shape = cache
    dW = np.zeros(shape)
    np.add.at(dW, ids, dy)                  # adds once for each n; dW[ids] += dy would keep one of equal ids
    return dW
