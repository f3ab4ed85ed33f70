"""Scaled dot-product attention, for every sequence and head at once.

    S = Q K^T / sqrt(d_k)      S = -inf at keys that are padding      P = softmax(S)      C = P V

The softmax runs over the keys, the last axis of S. Its backward is given; it was an earlier exercise.
"""

from math import sqrt

import numpy as np

from mini_bert.core.arrays import Array, BoolArray
from mini_bert.core.ops.softmax import softmax_backward, softmax_forward

Cache = tuple[Array, Array, Array, Array]


def attention_forward(Q: Array, K: Array, V: Array, key_mask: BoolArray) -> tuple[Array, Cache]:
    """Q, K, V (B, A, T, d_k), key_mask (B, T), True at real tokens -> C (B, A, T, d_k)."""
    scores = Q @ K.transpose(0, 1, 3, 2) / sqrt(Q.shape[3])               # (B, A, T, T)
    scores = np.where(key_mask[:, None, None, :], scores, -np.inf)
    weights, _ = softmax_forward(scores)
    return weights @ V, (Q, K, V, weights)


def attention_backward(dC: Array, cache: Cache) -> tuple[Array, Array, Array]:
    """dC (B, A, T, d_k) -> dQ, dK, dV, each (B, A, T, d_k)."""
    Q, K, V, weights = cache
    dV = weights.transpose(0, 1, 3, 2) @ dC                               # C = P V
    dweights = dC @ V.transpose(0, 1, 3, 2)
    dscores = softmax_backward(dweights, weights)                         # zero at padding, where P = 0
    dscores = dscores / sqrt(Q.shape[3])                                  # S = Q K^T / sqrt(d_k)
    dQ = dscores @ K
    dK = dscores.transpose(0, 1, 3, 2) @ Q
    return dQ, dK, dV
