"""A task with labels: the cross-entropy of the scores that a task's head gives."""

from collections.abc import Mapping, Sequence

import numpy as np

from ..core.context import DropoutKey
from ..core.ops.cross_entropy import target_losses
from ..core.params import Gradients, Parameters
from ..core.task_model import TaskBatch, TaskModel
from .objective import USUAL_PASSES, PassOptions, Team


class TaskLoss:
    """Of a model with a task's head. A batch is a list of micro-batches already, each padded to its longest."""

    main = "task"
    losses: Mapping[str, float] = {main: 1.0}

    def __init__(self, model: TaskModel, passes: PassOptions = USUAL_PASSES):
        self.model, self.passes = model, passes
        self.params: Parameters = model.params

    def micro_batches(self, batch: Sequence[TaskBatch]) -> Sequence[TaskBatch]:
        return batch

    def counts(self, part: TaskBatch) -> Mapping[str, int]:
        return {self.main: len(part.targets)}

    def add_gradients(self, part: TaskBatch, grads: Gradients, key: DropoutKey | None,
                      factors: Mapping[str, float]) -> Mapping[str, float]:
        loss, _ = self.model.add_gradients(part, grads, key, last=True, factor=factors[self.main],
                                           **self.passes.keeping)
        return {self.main: loss}

    def evaluate(self, parts: Sequence[TaskBatch], team: Team) -> dict[str, float]:
        """The mean loss over all answers of some parts, without dropout."""
        losses = team.map(lambda part: target_losses(self.model.scores(part), part.targets), parts)
        return {self.main: float(np.concatenate(losses).mean())}
