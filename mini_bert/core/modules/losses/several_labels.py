"""Several labels: each holds or not, whatever the others do.

    p = sigmoid(x)        loss = sum of -t ln p - (1 - t) ln(1 - p)              ops/binary_cross_entropy.py
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...arrays import Array, Targets
from ...ops.binary_cross_entropy import binary_cross_entropy_backward, binary_cross_entropy_forward
from ...ops.silu import sigmoid
from ...registry import register
from .loss import Reading, ScoreLoss


@register("task_loss", "binary_cross_entropy")
class BinaryCrossEntropy(ScoreLoss):
    """The targets (N, C) are 1 where a label holds; a label is predicted from a probability of one half on."""

    figures = "probabilities"

    def forward(self, scores: Array, targets: Targets) -> tuple[float, Any]:
        return binary_cross_entropy_forward(scores, targets)

    def backward(self, dloss: float, cache: Any) -> Array:
        return binary_cross_entropy_backward(dloss, cache)

    def values(self, scores: Array) -> Array:
        return sigmoid(scores)

    def reading(self, values: Array, labels: Sequence[str]) -> Reading:
        chosen = [label for label, p in zip(labels, values, strict=True) if p >= 0.5]
        return Reading(", ".join(chosen) or "none", None, dict(zip(labels, map(float, values), strict=True)))

    def example_targets(self, classes: Targets, outputs: int, rng: np.random.Generator) -> Targets:
        return rng.integers(0, 2, (len(classes), outputs))
