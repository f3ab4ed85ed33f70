"""Layer normalisation of each row, then a scale and a shift per feature.

    mu   = mean_j x_j        var = mean_j (x_j - mu)^2        r = 1 / sqrt(var + eps)
    xhat = (x - mu) r        y   = gamma xhat + beta

    dxhat  = gamma dy
    dx     = r (dxhat - mean_j dxhat_j - xhat mean_j dxhat_j xhat_j)
    dgamma = sum over rows of dy xhat        dbeta = sum over rows of dy

The two means are what mu and var, which move with every x_j of the row, send back.
Derivation: docs/math/layernorm.md
"""

from dataclasses import replace

import numpy as np

from ..arrays import Array
from ..formulas import Formula, Terms
from ..gradcheck import Check

LayerNormCache = tuple[Array, Array, Array]


def layernorm_forward(x: Array, gamma: Array, beta: Array | None, eps: float) -> tuple[Array, LayerNormCache]:
    """x (N, H), gamma and beta (H,) -> y (N, H). There may be no beta."""
    H = x.shape[1]
    average = np.full(H, 1 / H, x.dtype)                      # a mean as a product: 4x faster than .mean(-1)
    mu = x @ average                                          # (N,)
    xhat = x - mu[:, None]
    r = 1 / np.sqrt(np.einsum("ij,ij->i", xhat, xhat) / H + eps)
    xhat *= r[:, None]
    y = xhat * gamma
    if beta is not None:
        y += beta
    return y, (xhat, r, gamma)


def layernorm_backward(dy: Array, cache: LayerNormCache) -> tuple[Array, Array, Array]:
    """dy (N, H) -> dx (N, H), dgamma (H,), dbeta (H,)."""
    xhat, r, gamma = cache
    H = xhat.shape[1]
    average = np.full(H, 1 / H, dy.dtype)
    ones = np.ones(len(dy), dy.dtype)                         # a sum over rows as a product: twice as fast
    # y += beta
    dbeta = ones @ dy
    # y = xhat gamma
    product = dy * xhat
    dgamma = ones @ product
    along_xhat = product @ (gamma * average)                  # (N,)
    dx = np.multiply(dy, gamma, out=product)                  # dxhat, in the memory of the product
    # xhat = (x - mu) r: mu takes away what is common to a row, r (but for eps) what lies along xhat
    common = dx @ average                                     # (N,)
    dx -= common[:, None]
    dx -= xhat * along_xhat[:, None]
    dx *= r[:, None]
    return dx, dgamma, dbeta


_WHERE = ("mu = mean({0})", "sigma = sqrt(mean(({0} - mu)^2) + eps)")
FORMULA = Formula("layernorm", "{gamma} * ({0} - mu) / sigma + {beta}",
                  ("(dxhat - mean(dxhat) - xhat * mean(dxhat * xhat)) / sigma",),
                  {"gamma": "sum_t(d{y} * xhat)", "beta": "sum_t(d{y})"}, where=_WHERE, terms=Terms.NORMALISED,
                  page="layernorm",
                  back="Mean and size of the vector were normalised away, so changes along them are taken "
                       "off the gradient.",
                  why="Brings each vector to mean 0 and variance 1, then scales it, so that neither values nor "
                      "gradients grow from layer to layer.",
                  gradient_where=("dxhat = d{y} * {gamma}", "xhat = ({0} - mu) / sigma", *_WHERE))
WITHOUT_BETA = replace(FORMULA, forward=FORMULA.forward.removesuffix(" + {beta}"), terms=Terms.FORMULA,
                       parameters={"gamma": FORMULA.parameters["gamma"]})
CHECKS = [
    Check("rows", lambda rng: [rng.standard_normal(s) for s in ((4, 6), (6,), (6,))], eps=1e-5),
    Check("far from zero", lambda rng: [10 + 3 * rng.standard_normal((3, 5)), *rng.standard_normal((2, 5))],
          eps=1e-12),
    Check("eps above the variance", lambda rng: [0.01 * rng.standard_normal((3, 4)), *rng.standard_normal((2, 4))],
          eps=1e-2),
]
