"""Several labels: each holds or not, whatever the others do, so each score has a loss of its own.

    p = sigmoid(x)         loss = sum (-t ln p - (1 - t) ln(1 - p)) = sum (max(x, 0) - x t + ln(1 + exp(-|x|)))
    dx = dloss (p - t)                                            derivation: docs/math/binary_cross_entropy.md
"""

from collections.abc import Sequence

import numpy as np

from ...arrays import Array, Targets
from ...gradcheck import Check
from ...ops.silu import sigmoid
from ...registry import register
from .loss import Reading, ScoreLoss


@register("task_loss", "binary_cross_entropy")
class BinaryCrossEntropy(ScoreLoss):
    """The targets (N, C) are 1 where a label holds, else 0, or shares between; a label is predicted from a probability
    of one half on."""

    figures = "probabilities"
    checks = (Check("labels", lambda rng: [rng.standard_normal((3, 4))],
                    targets=np.array([[0, 1, 1, 0], [1, 1, 0, 0], [0] * 4])),
              Check("shares, and far from zero", lambda rng: [4 * rng.standard_normal((2, 3))],
                    targets=np.array([[0.25, 1, 0], [0.5, 0, 0.75]])))

    def forward(self, scores: Array, targets: Targets) -> tuple[float, tuple[Array, Array]]:
        t = targets.astype(scores.dtype)
        losses = np.maximum(scores, 0) - scores * t + np.log1p(np.exp(-np.abs(scores)))
        return float(losses.sum(dtype=np.float64)), (sigmoid(scores), t)

    def backward(self, dloss: float, cache: tuple[Array, Array]) -> Array:
        p, t = cache
        dscores: Array = dloss * (p - t)      # the slope of max(x, 0) + ln(1 + exp(-|x|)) is the sigmoid
        return dscores

    def values(self, scores: Array) -> Array:
        return sigmoid(scores)

    def reading(self, values: Array, labels: Sequence[str]) -> Reading:
        chosen = [label for label, p in zip(labels, values, strict=True) if p >= 0.5]
        return Reading(", ".join(chosen) or "none", None, dict(zip(labels, map(float, values), strict=True)))

    def example_targets(self, classes: Targets, outputs: int, rng: np.random.Generator) -> Targets:
        return rng.integers(0, 2, (len(classes), outputs))
