"""A task with right answers: the loss of the scores that its head gives, by the word of the model's loss."""

from collections.abc import Mapping, Sequence

from ..core.context import DropoutKey
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
        return {self.main: part.targets.size}

    def add_gradients(self, part: TaskBatch, grads: Gradients, key: DropoutKey | None,
                      factors: Mapping[str, float]) -> Mapping[str, float]:
        loss, _ = self.model.add_gradients(part, grads, key, last=True, factor=factors[self.main],
                                           **self.passes.keeping)
        return {self.main: loss}

    def evaluate(self, parts: Sequence[TaskBatch], team: Team) -> dict[str, float]:
        """The mean loss over all answers of some parts, without dropout."""
        losses = team.map(lambda part: self.model.loss.forward(self.model.scores(part), part.targets)[0], parts)
        return {self.main: sum(losses) / sum(part.targets.size for part in parts)}
