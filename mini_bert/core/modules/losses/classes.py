"""Classes: exactly one label is right, and the scores compete by softmax.

    p = softmax(x)        loss = sum over n of -ln p_n,t_n                       ops/cross_entropy.py
"""

from collections.abc import Sequence
from typing import Any

from ...arrays import Array, Targets
from ...ops.cross_entropy import cross_entropy_backward, cross_entropy_forward
from ...ops.softmax import softmax_forward
from ...registry import register
from .loss import Reading, ScoreLoss


@register("task_loss", "cross_entropy")
class CrossEntropy(ScoreLoss):
    """The targets (N,) are numbers of labels."""

    figures = "probabilities"

    def forward(self, scores: Array, targets: Targets) -> tuple[float, Any]:
        return cross_entropy_forward(scores, targets)

    def backward(self, dloss: float, cache: Any) -> Array:
        return cross_entropy_backward(dloss, cache)

    def values(self, scores: Array) -> Array:
        return softmax_forward(scores)[0]

    def reading(self, values: Array, labels: Sequence[str]) -> Reading:
        best = int(values.argmax())
        return Reading(labels[best], float(values[best]), dict(zip(labels, map(float, values), strict=True)))
