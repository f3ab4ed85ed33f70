"""Embedding: each id looks up its row of a table.

    y_n = W[ids_n]
"""

import numpy as np

from mini_bert.core.arrays import Array, IntArray

Cache = tuple[IntArray, tuple[int, ...]]


def embedding_forward(W: Array, ids: IntArray) -> tuple[Array, Cache]:
    """W (V, H), ids (N,), in which ids may repeat -> y (N, H)."""
    return W[ids], (ids, W.shape)


def embedding_backward(dy: Array, cache: Cache) -> Array:
    """dy (N, H) -> dW (V, H)."""
    ids, shape = cache
    dW = np.zeros(shape)
    np.add.at(dW, ids, dy)                  # adds every n; dW[ids] += dy would keep only one of equal ids
    return dW
