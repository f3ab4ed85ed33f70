"""Muon: the step of a hidden matrix is its averaged gradient, made orthogonal; everything else is stepped by AdamW.

    m <- mu m + (1 - mu) G                   N = mu m + (1 - mu) G          (N = m without nesterov)
    W <- W - lr decay W - lr rms sqrt(max(rows, columns)) O(N)              derivation: docs/math/muon.md

If N = U S V^T, then O(N) is about U V^T: all directions that the gradient knows are taken equally far. Five steps of an
iteration with matrix products alone come near enough:

    X <- N / |N|        X <- a X + b (X X^T) X + c (X X^T)^2 X              five times

U V^T has elements of root mean square 1 / sqrt(max(rows, columns)); times that root and `rms` = 0.2, a step is as long
as AdamW's usually are, so one learning rate and one weight decay serve both.
"""

from collections.abc import Mapping
from math import sqrt

import numpy as np

from ...core.arrays import Array
from ...core.params import Parameters, ParamSpec
from ...core.registry import register
from ...errors import ConfigError
from .adamw import AdamW
from .optimiser import require_shares

_COEFFICIENTS = 3.4445, -4.7750, 2.0315       # small singular values grow fast, and none beyond 1.21


def orthogonalised(G: Array, iterations: int = 5) -> Array:
    """A matrix with the singular vectors of G whose singular values are about 1 (0.7 to 1.2); zero for zero.

    Singular values of G below a few thousandths of its norm need more iterations.
    """
    a, b, c = _COEFFICIENTS
    norm = sqrt(float(np.vdot(G, G)))
    if not norm:
        return np.zeros_like(G)
    X = (G if G.shape[0] <= G.shape[1] else G.T) / norm       # X X^T is the smaller of the two products
    for _ in range(iterations):
        A = X @ X.T
        B = A @ A
        B *= c
        A *= b
        B += A
        B.flat[:: len(B) + 1] += a                            # (a I + b A + c A^2) X
        X = B @ X
    return X if G.shape[0] <= G.shape[1] else X.T


@register("optimiser", "muon")
class Muon(AdamW):
    """`beta1`, `beta2` and `epsilon` are AdamW's, for the parameters that are no matrices inside a layer. For these
    matrices, the second moments `v` are not used and stay zero."""

    title = "Muon"

    def __init__(self, params: Parameters, learning_rate: float = 1e-3, *, momentum: float = 0.95,
                 nesterov: bool = True, iterations: int = 5, rms: float = 0.2, beta1: float = 0.9, beta2: float = 0.999,
                 epsilon: float = 1e-8, weight_decay: float = 0.01, factors: Mapping[str, float] | None = None,
                 groups: Mapping[str, str] | None = None):
        require_shares(momentum=(momentum, 1), rms=(rms, np.inf))
        if not isinstance(iterations, int) or isinstance(iterations, bool) or not 1 <= iterations < 100:
            raise ConfigError(f"muon: iterations must be a whole number from 1 to 99, not {iterations}.")
        super().__init__(params, learning_rate, beta1=beta1, beta2=beta2, epsilon=epsilon, weight_decay=weight_decay,
                         factors=factors, groups=groups)
        self.momentum, self.nesterov, self.iterations, self.rms = momentum, nesterov, iterations, rms

    @staticmethod
    def whole(spec: ParamSpec) -> bool:
        return spec.is_hidden_matrix

    def matrix_direction(self, g: Array, u: Array, rate: float, *states: Array) -> None:
        m, _ = states
        np.subtract(g, m, out=u)                              # m <- m + (1 - mu)(G - m)
        u *= 1 - self.momentum
        m += u
        if self.nesterov:                                     # N = G + mu (m - G)
            np.subtract(m, g, out=u)
            u *= self.momentum
            u += g
        else:
            u[...] = m
        u[...] = orthogonalised(u, self.iterations)
        u *= rate * self.rms * sqrt(max(u.shape))
