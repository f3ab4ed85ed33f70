"""Numbers: a score is the answer, in units that are easy to learn.

    y = mean + scale x     loss = sum (x - t)^2,    t = (answer - mean) / scale
    dx = dloss 2 (x - t)                                                 derivation: docs/math/squared_error.md

With mean and standard deviation of the training answers, the scores of a new head, near zero, begin at their mean, and
the loss is the share of their variance that is not explained, whatever the scale of the data.
"""

from collections.abc import Sequence

import numpy as np

from ....errors import ConfigError
from ...arrays import Array, Targets
from ...gradcheck import Check
from ...registry import register
from .loss import Reading, ScoreLoss


@register("task_loss", "squared_error")
class SquaredError(ScoreLoss):
    """The targets (N, C) are the right numbers."""

    figures = "values"
    checks = (Check("one number for each text", lambda rng: [rng.standard_normal((4, 1))],
                    targets=np.array([[0.5], [-1.0], [2.0], [0.0]])),
              Check("several numbers", lambda rng: [3 * rng.standard_normal((2, 3))],
                    targets=np.array([[1, 2, 3], [-4, 0, 5]])))

    def __init__(self, mean: float = 0.0, scale: float = 1.0):
        if not all(isinstance(value, int | float) and np.isfinite(value) for value in (mean, scale)) or scale <= 0:
            raise ConfigError(f"squared_error needs a mean and a scale above 0, not {mean} and {scale}.")
        self.mean, self.scale = float(mean), float(scale)

    def forward(self, scores: Array, targets: Targets) -> tuple[float, Array]:
        difference = scores - ((targets - self.mean) / self.scale).astype(scores.dtype)
        return float(np.einsum("nc,nc->", difference, difference, dtype=np.float64)), difference

    def backward(self, dloss: float, difference: Array) -> Array:
        dscores: Array = (2 * dloss) * difference
        return dscores

    def values(self, scores: Array) -> Array:
        y: Array = self.mean + self.scale * scores
        return y

    def reading(self, values: Array, labels: Sequence[str]) -> Reading:
        return Reading(", ".join(f"{value:.4g}" for value in values), None,
                       dict(zip(labels, map(float, values), strict=True)))

    def example_targets(self, classes: Targets, outputs: int, rng: np.random.Generator) -> Targets:
        return rng.standard_normal((len(classes), outputs))
