"""Gradient descent, with momentum if it is above zero.

    b <- momentum b + g
    w <- w - lr decay w - lr b
"""

from collections.abc import Mapping

from ...core.arrays import Array
from ...core.params import Parameters
from ...core.registry import register
from .optimiser import Optimiser, require_shares


@register("optimiser", "sgd")
class SGD(Optimiser):
    title = "gradient descent"
    states = ("b",)

    def __init__(self, params: Parameters, learning_rate: float = 1e-3, *, momentum: float = 0.0,
                 weight_decay: float = 0.01, factors: Mapping[str, float] | None = None,
                 groups: Mapping[str, str] | None = None):
        require_shares(momentum=(momentum, 1))
        super().__init__(params, learning_rate, weight_decay=weight_decay, factors=factors, groups=groups)
        self.momentum = momentum

    def direction(self, g: Array, u: Array, rate: float, *states: Array) -> None:
        b, = states
        b *= self.momentum
        b += g
        u[...] = b
        u *= rate
