"""Numbers: a score is the answer, in units that are easy to learn.

    y = mean + scale x        loss = sum of (x - (t - mean) / scale)^2           ops/squared_error.py

With mean and standard deviation of the training answers, the scores of a new head, near zero, begin at their mean, and
the loss is the share of their variance that is not explained, whatever the scale of the data.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....errors import ConfigError
from ...arrays import Array, Targets
from ...ops.squared_error import squared_error_backward, squared_error_forward
from ...registry import register
from .loss import Reading, ScoreLoss


@register("task_loss", "squared_error")
class SquaredError(ScoreLoss):
    """The targets (N, C) are the right numbers."""

    figures = "values"

    def __init__(self, mean: float = 0.0, scale: float = 1.0):
        if not all(isinstance(value, int | float) and np.isfinite(value) for value in (mean, scale)) or scale <= 0:
            raise ConfigError(f"squared_error needs a mean and a scale above 0, not {mean} and {scale}.")
        self.mean, self.scale = float(mean), float(scale)

    def forward(self, scores: Array, targets: Targets) -> tuple[float, Any]:
        return squared_error_forward(scores, (targets - self.mean) / self.scale)

    def backward(self, dloss: float, cache: Any) -> Array:
        return squared_error_backward(dloss, cache)

    def values(self, scores: Array) -> Array:
        y: Array = self.mean + self.scale * scores
        return y

    def reading(self, values: Array, labels: Sequence[str]) -> Reading:
        return Reading(", ".join(f"{value:.4g}" for value in values), None,
                       dict(zip(labels, map(float, values), strict=True)))

    def example_targets(self, classes: Targets, outputs: int, rng: np.random.Generator) -> Targets:
        return rng.standard_normal((len(classes), outputs))
