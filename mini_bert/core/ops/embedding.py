"""Embedding: row lookup, and its transpose, the scatter-add.

    y_n  = W[ids_n]
    dW_v = sum of dy_n over all n with ids_n = v                      derivation: docs/math/embedding.md
"""

import numpy as np

from ..arrays import Array, IntArray
from ..gradcheck import Check


def embedding_forward(W: Array, ids: IntArray) -> tuple[Array, tuple[IntArray, tuple[int, ...]]]:
    """W (V, H), ids (N,) -> y (N, H)."""
    y = W[ids]
    return y, (ids, W.shape)


def embedding_backward(dy: Array, cache: tuple[IntArray, tuple[int, ...]], dW: Array | None = None) -> Array:
    """dy (N, H) -> dW (V, H), added to the `dW` given or to zeros.

    Equal ids are brought together by sorting and summed in runs: `dW[ids] += dy` would keep one
    of several equal ids, and np.add.at is many times slower.
    """
    ids, shape = cache
    dW = np.zeros(shape, dy.dtype) if dW is None else dW
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))      # where a new id begins
    dW[ordered[starts]] += np.add.reduceat(dy[order], starts, axis=0)
    return dW


CHECKS = [
    Check("repeated ids", lambda rng: [rng.standard_normal((5, 3))], ids=np.array([4, 0, 4, 2, 4, 0])),
    Check("one id", lambda rng: [rng.standard_normal((2, 3))], ids=np.array([1])),
]
