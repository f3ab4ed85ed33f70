"""One update: the loss of a batch, its gradients by all threads together, clipping, and a step of the optimiser.

Pre-training, fine-tuning, probes, the search for a learning rate and the explorer's single step are this update with
different objectives.
"""

from math import isfinite
from typing import Any, Generic, NamedTuple

import numpy as np

from ..core.params import Parameters
from ..errors import NumericalError
from ..objectives.objective import Batch, Loss, Losses, Objective, Part
from .gradient_sum import GradientSum
from .optimisers.optimiser import Measures, Optimiser, clip_factor
from .workers import Workers


class StepResult(NamedTuple):
    losses: Losses
    grad_norm: float
    measures: Measures | None = None
    finite: bool = True                   # if not, nothing was moved

    @property
    def loss(self) -> Loss:
        """The loss whose count divides the gradients."""
        return next(iter(self.losses.values()), Loss(0.0, 0))


class BatchGradients(Generic[Batch, Part]):
    """The gradients of a batch's summed loss, its micro-batches computed each by one thread."""

    def __init__(self, objective: Objective[Batch, Part], workers: Workers):
        self.objective, self.workers = objective, workers
        self.gradients: Parameters = objective.params.zeros_like()
        self._sum = GradientSum(self.gradients)

    def compute(self, batch: Batch, *key: Any) -> Losses:
        """Forward and backward. Dropout is keyed by `key` and the micro-batch's number, not by its thread; without a
        key there is none."""
        parts = self.objective.micro_batches(batch)
        self._sum.begin(len(parts))

        def one(number: int) -> Losses:
            grads = self._sum.micro_batch(number)
            with np.errstate(over="ignore", invalid="ignore"):        # what is not finite is noticed, and skipped
                losses = self.objective.add_gradients(parts[number], grads, (*key, number) if key else None)
            grads.finish()
            return losses

        results = self.workers.map(one, range(len(parts)))
        self._sum.finish()
        names = dict.fromkeys(name for losses in results for name in losses)
        found = {name: [losses[name] for losses in results if name in losses] for name in names}
        return {name: Loss(sum(loss.total for loss in some), sum(loss.count for loss in some))
                for name, some in found.items()}


class Update(Generic[Batch, Part]):
    """The step that an objective and an optimiser take together."""

    def __init__(self, objective: Objective[Batch, Part], optimiser: Optimiser, workers: Workers, *,
                 max_grad_norm: float = 0.0):
        self.batch_gradients = BatchGradients(objective, workers)
        self.optimiser, self.workers, self.max_grad_norm = optimiser, workers, max_grad_norm

    def step(self, batch: Batch, key: tuple[Any, ...], rate: float, measure: bool = False) -> StepResult:
        """Loss, gradients and the optimiser's step, unless something is not finite: then nothing moves."""
        gradients = self.batch_gradients.gradients
        try:
            result = StepResult(self.batch_gradients.compute(batch, *key), 0.0)
        except NumericalError:
            return StepResult({"": Loss(float("nan"), 1)}, float("nan"), finite=False)
        count = max(result.loss.count, 1)
        norm = self.optimiser.grad_norm(gradients, self.workers) / count
        if not (isfinite(result.loss.total) and isfinite(norm) and result.loss.count):
            return StepResult(result.losses, norm, finite=False)
        scale = clip_factor(norm, self.max_grad_norm) / count
        measures = self.optimiser.step(gradients, learning_rate=rate, scale=scale, workers=self.workers,
                                       measure=measure)
        return StepResult(result.losses, norm, measures)
