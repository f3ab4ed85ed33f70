"""Lion: every weight moves by the same amount, in the direction of the sign of a mix of gradient and memory.

    w <- w - lr decay w - lr sign(b1 m + (1 - b1) g)        sign(0) = 0
    m <- b2 m + (1 - b2) g                                                  derivation: docs/math/lion.md

One state array instead of AdamW's two. A step is as long as AdamW's longest, so the learning rate is three to ten times
smaller, and the weight decay larger by the same factor.
"""

from collections.abc import Mapping

import numpy as np

from ...core.arrays import Array
from ...core.params import Parameters
from ...core.registry import register
from .optimiser import Optimiser, require_shares


@register("optimiser", "lion")
class Lion(Optimiser):
    title = "Lion"
    states = ("m",)

    def __init__(self, params: Parameters, learning_rate: float = 1e-4, *, beta1: float = 0.9, beta2: float = 0.99,
                 weight_decay: float = 0.01, factors: Mapping[str, float] | None = None,
                 groups: Mapping[str, str] | None = None):
        require_shares(beta1=(beta1, 1), beta2=(beta2, 1))
        super().__init__(params, learning_rate, weight_decay=weight_decay, factors=factors, groups=groups)
        self.beta1, self.beta2 = beta1, beta2

    @property
    def m(self) -> Array:
        return self.state["m"]

    def direction(self, g: Array, u: Array, rate: float, *states: Array) -> None:
        m, = states
        g -= m
        np.multiply(g, 1 - self.beta1, out=u)                     # u = b1 m + (1 - b1) g = m + (1 - b1)(g - m)
        u += m
        np.sign(u, out=u)
        u *= rate
        g *= 1 - self.beta2                                       # m <- b2 m + (1 - b2) g = m + (1 - b2)(g - m)
        m += g
