"""Lookahead: slow weights that follow the fast weights of another optimiser, k steps at a time.

    after every k-th step of the inner optimiser:     slow <- slow + alpha (fast - slow)
                                                      fast <- slow
                                                                        derivation: docs/math/lookahead.md

The slow weights begin as the weights of step 0. They are what is evaluated and saved as a model.
"""

from ...core.arrays import Array
from ...core.registry import register
from ...errors import ConfigError
from ...workers import Workers
from .optimiser import Optimiser
from .wrapper import Averager


@register("optimiser", "lookahead")
class Lookahead(Averager):
    title = "Lookahead"
    states = ("slow",)

    def __init__(self, inner: Optimiser, *, k: int = 6, alpha: float = 0.5):
        if not isinstance(k, int) or isinstance(k, bool) or k < 1:
            raise ConfigError(f"lookahead: k must be a whole number of steps above zero, not {k}.")
        if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha <= 1:
            raise ConfigError(f"lookahead: alpha must be above 0 and at most 1, not {alpha}.")
        super().__init__(inner)
        self.k, self.alpha = k, alpha

    @property
    def slow(self) -> Array:
        return self.average

    def after_step(self, workers: Workers | None) -> None:
        if self.t % self.k == 0:
            self.move_average(self.alpha, workers)                # slow <- slow + alpha (fast - slow)
            self.weights[...] = self.slow                     # fast <- slow
