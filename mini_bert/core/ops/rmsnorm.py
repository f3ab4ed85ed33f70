"""RMS normalisation of each row, then a scale per feature: LayerNorm that leaves the mean alone.

    r = 1 / sqrt(mean_j x_j^2 + eps)        xhat = x r        y = gamma xhat

    dxhat  = gamma dy        dx = r (dxhat - xhat mean_j dxhat_j xhat_j)
    dgamma = sum over rows of dy xhat                                    derivation: docs/math/rmsnorm.md
"""

import numpy as np

from ..arrays import Array
from ..formulas import Formula
from ..gradcheck import Check

RMSNormCache = tuple[Array, Array, Array]


def rmsnorm_forward(x: Array, gamma: Array, eps: float) -> tuple[Array, RMSNormCache]:
    """x (N, H), gamma (H,) -> y (N, H)."""
    r = 1 / np.sqrt(np.einsum("ij,ij->i", x, x) / x.shape[1] + eps)
    xhat = x * r[:, None]
    return xhat * gamma, (xhat, r, gamma)


def rmsnorm_backward(dy: Array, cache: RMSNormCache) -> tuple[Array, Array]:
    """dy (N, H) -> dx (N, H), dgamma (H,)."""
    xhat, r, gamma = cache
    # y = xhat gamma
    product = dy * xhat
    dgamma = np.ones(len(dy), dy.dtype) @ product             # a sum over rows as a product: twice as fast
    along_xhat = product @ (gamma / xhat.shape[1])            # (N,)
    dx = np.multiply(dy, gamma, out=product)                  # dxhat, in the memory of the product
    # xhat = x r: r takes away (but for eps) what lies along xhat
    dx -= xhat * along_xhat[:, None]
    dx *= r[:, None]
    return dx, dgamma


_WHERE = ("rms = sqrt(mean({0}^2) + eps)",)
FORMULA = Formula("rmsnorm", "{gamma} * {0} / rms", ("(dxhat - xhat * mean(dxhat * xhat)) / rms",),
                  {"gamma": "sum_t(d{y} * xhat)"}, where=_WHERE, page="rmsnorm",
                  back="The size of the vector was normalised away, so changes along it are taken off the gradient.",
                  why="Brings each vector to the same size, so that neither values nor gradients grow from layer to "
                      "layer; unlike LayerNorm it leaves the mean as it is.",
                  gradient_where=("dxhat = d{y} * {gamma}", "xhat = {0} / rms", *_WHERE))
CHECKS = [
    Check("rows", lambda rng: [rng.standard_normal(s) for s in ((4, 6), (6,))], eps=1e-5),
    Check("far from zero", lambda rng: [10 + 3 * rng.standard_normal((3, 5)), rng.standard_normal(5)], eps=1e-12),
    Check("eps above the mean square", lambda rng: [0.01 * rng.standard_normal((3, 4)), rng.standard_normal(4)],
          eps=1e-2),
]
