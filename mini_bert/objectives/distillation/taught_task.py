"""Distillation for a task: labels and the scores of a teacher that has learned the task, mixed.

    total = (1 - weight) cross-entropy(scores, labels)  +  weight distance(scores, the teacher's scores)

each divided by its own count: rows without a label, such as text that nobody has labelled, have the second loss alone.
The distance is `kl`, the soft cross-entropy at a temperature, or `squared`, the mean squared difference of the scores
(Tang et al. 2019). Derivation: docs/math/distillation.md
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ...core.arrays import Array, BoolArray
from ...core.context import DropoutKey
from ...core.ops.cross_entropy import cross_entropy_backward, cross_entropy_forward
from ...core.params import Gradients, Parameters
from ...core.task_model import TaskBatch, TaskModel
from ..objective import PassOptions
from .matching import DISTANCES, Distance, softened

LABELS, TEACHER = "task", "teacher"                       # the losses
# the word of a distance between scores -> what gives it at a temperature
SCORE_DISTANCES: Mapping[str, Callable[[float], Distance]] = {"kl": softened,
                                                              "squared": lambda temperature: DISTANCES["squared"]}


class TaughtBatch(NamedTuple):
    """Sequences of a task, the teacher's scores of their answers (N, C), and which of the answers have labels (N,)."""

    batch: TaskBatch
    scores: Array
    labelled: BoolArray


class TaughtTask:
    """Of a model with a task's head. A batch is a list of micro-batches already, each padded to its longest."""

    def __init__(self, model: TaskModel, passes: PassOptions, distance: Distance, weight: float):
        self.model, self.passes, self.distance = model, passes, distance
        self.losses: Mapping[str, float] = {name: value for name, value in ((TEACHER, weight), (LABELS, 1 - weight))
                                            if value}
        self.main = next(iter(self.losses))
        self.params: Parameters = model.params

    def micro_batches(self, batch: Sequence[TaughtBatch]) -> Sequence[TaughtBatch]:
        return batch

    def counts(self, part: TaughtBatch) -> Mapping[str, int]:
        found = {TEACHER: len(part.scores), LABELS: int(part.labelled.sum())}
        return {name: found[name] for name in self.losses}

    def add_gradients(self, part: TaughtBatch, grads: Gradients, key: DropoutKey | None,
                      factors: Mapping[str, float]) -> Mapping[str, float]:
        def loss(scores: Array) -> tuple[dict[str, float], Array]:
            sums: dict[str, float] = {}
            dscores = np.zeros_like(scores)
            if TEACHER in self.losses:
                sums[TEACHER], kept = self.distance.forward(scores, part.scores.astype(scores.dtype))
                dscores += self.distance.backward(factors[TEACHER], kept)
            if LABELS in self.losses:
                sums[LABELS], labels = cross_entropy_forward(scores, part.batch.targets, part.labelled)
                dscores += cross_entropy_backward(factors[LABELS], labels)
            return sums, dscores

        return self.model.add_gradients_of(part.batch, grads, loss, key, last=True, **self.passes.keeping)
