"""Layer normalisation of each row, then a scale and a shift for each feature.

    mu   = mean_j x_j        var = mean_j (x_j - mu)^2        r = 1 / sqrt(var + eps)
    xhat = (x - mu) r        y   = gamma xhat + beta
"""

import numpy as np

from mini_bert.core.arrays import Array

Cache = tuple[Array, Array, Array]


def layernorm_forward(x: Array, gamma: Array, beta: Array, eps: float) -> tuple[Array, Cache]:
    """x (N, H), gamma and beta (H,) -> y (N, H); the cache holds xhat (N, H), r (N, 1) and gamma."""
    mu = x.mean(axis=1, keepdims=True)
    var = ((x - mu) ** 2).mean(axis=1, keepdims=True)
    r = 1 / np.sqrt(var + eps)
    xhat = (x - mu) * r
    return gamma * xhat + beta, (xhat, r, gamma)


def layernorm_backward(dy: Array, cache: Cache) -> tuple[Array, Array, Array]:
    """dy (N, H) -> dx (N, H), dgamma (H,), dbeta (H,)."""
    xhat, r, gamma = cache
    dbeta = dy.sum(axis=0)                                # y = gamma xhat + beta, with the same beta in every row
    dgamma = (dy * xhat).sum(axis=0)
    dxhat = dy * gamma
    common = dxhat.mean(axis=1, keepdims=True)            # the gradient through mu
    along = (dxhat * xhat).mean(axis=1, keepdims=True)    # the gradient through var
    dx = r * (dxhat - common - xhat * along)
    return dx, dgamma, dbeta
