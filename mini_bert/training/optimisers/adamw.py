"""AdamW.

    m <- b1 m + g                   mhat = m (1 - b1) / (1 - b1^t)
    v <- b2 v + g^2                 vhat = v (1 - b2) / (1 - b2^t)
    w <- w - lr decay w - lr mhat / (sqrt(vhat) + eps)                      derivation: docs/math/adamw.md

The moments are kept as plain sums; the factors that make averages of them join the constants of the last line.
Weight decay acts on the weights directly, not through the gradient: that is the W.
"""

from collections.abc import Mapping
from math import sqrt

import numpy as np

from ...core.arrays import Array
from ...core.params import Parameters
from ...core.registry import register
from .optimiser import Optimiser, require_shares


@register("optimiser", "adamw")
class AdamW(Optimiser):
    title = "AdamW"
    states = ("m", "v")

    def __init__(self, params: Parameters, learning_rate: float = 1e-3, *, beta1: float = 0.9, beta2: float = 0.999,
                 epsilon: float = 1e-8, weight_decay: float = 0.01, factors: Mapping[str, float] | None = None,
                 groups: Mapping[str, str] | None = None):
        require_shares(beta1=(beta1, 1), beta2=(beta2, 1), epsilon=(epsilon, np.inf))
        super().__init__(params, learning_rate, weight_decay=weight_decay, factors=factors, groups=groups)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon

    @property
    def m(self) -> Array:
        return self.state["m"]

    @property
    def v(self) -> Array:
        return self.state["v"]

    def direction(self, g: Array, u: Array, rate: float, *states: Array) -> None:
        m, v = states
        b1, b2 = self.beta1, self.beta2
        # mhat / (sqrt(vhat) + eps) = (m_factor / root) m / (sqrt(v) + eps / root)
        m_factor, root = (1 - b1) / (1 - b1**self.t), sqrt((1 - b2) / (1 - b2**self.t))
        m *= b1                                                   # m <- b1 m + g
        m += g
        g *= g                                                    # v <- b2 v + g^2
        v *= b2
        v += g
        np.sqrt(v, out=u)                                         # u = lr mhat / (sqrt(vhat) + eps)
        u += self.epsilon / root
        np.divide(m, u, out=u)
        u *= rate * m_factor / root
