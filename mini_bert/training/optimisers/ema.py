"""An exponential moving average of the weights of another optimiser, which trains on as if there were none.

    after step t of the inner optimiser:      average <- average + (1 - d) / (1 - d^t) (weights - average)
                                                                        derivation: docs/math/weight_averaging.md

The factor 1 / (1 - d^t) takes the weights of step 0 out of the average, which would otherwise be most of it for the
first 1 / (1 - d) steps. The average is what is evaluated and saved as a model.
"""

from ...core.registry import register
from ...errors import ConfigError
from ...workers import Workers
from .optimiser import Optimiser
from .wrapper import Averager


@register("optimiser", "ema")
class ExponentialAverage(Averager):
    title = "Average of the weights"
    states = ("average",)

    def __init__(self, inner: Optimiser, *, decay: float = 0.999):
        if isinstance(decay, bool) or not isinstance(decay, int | float) or not 0 <= decay < 1:
            raise ConfigError(f"ema: decay must be in [0, 1), not {decay}.")
        super().__init__(inner)
        self.decay = decay

    def after_step(self, workers: Workers | None) -> None:
        self.move_average((1 - self.decay) / (1 - self.decay**self.t), workers)
