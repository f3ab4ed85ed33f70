"""One update: the loss of a batch, its gradients by all threads together, clipping, and a step of the optimiser.

Several processes take it together: each computes some of the micro-batches, and the optimiser steps its shard of the
parameters (parallel/__init__.py). A process alone has all micro-batches, and one shard.

Pre-training, fine-tuning, probes, the search for a learning rate and the explorer's single step are this update with
different objectives.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Generic, NamedTuple

import numpy as np

from ..core.params import Parameters
from ..errors import NumericalError
from ..objectives.objective import Batch, Loss, Losses, Objective, Part
from ..parallel.processes import ALONE, Processes
from ..workers import Workers
from .clipping.clipping import Clipping
from .gradient_exchange import GradientExchange
from .optimisers.optimiser import Measures, Optimiser


class StepResult(NamedTuple):
    losses: Losses
    loss: Loss                            # the main one
    total: float                          # what the step minimises: the means of all losses, times their weights
    grad_norm: float
    measures: Measures | None = None
    finite: bool = True                   # if not, nothing was moved
    tallies: Mapping[str, Any] = {}       # what else the objective has counted, for its feedback


class BatchGradients(Generic[Batch, Part]):
    """The gradients of a batch, its micro-batches computed each by one thread.

    What `gradients` holds is `count` times the gradient of the objective's total. With one loss of weight 1 that is the
    gradient of the summed loss. Of several processes each holds its own shard of them.
    """

    def __init__(self, objective: Objective[Batch, Part], workers: Workers, processes: Processes = ALONE,
                 shards: Sequence[slice] = ()):
        self.objective, self.workers = objective, workers
        self.count = 1
        self.tallies: Mapping[str, Any] = {}
        self._sum = GradientExchange(objective.params, processes, shards)
        self.gradients: Parameters = self._sum.gradients

    def compute(self, batch: Batch, *key: Any) -> Losses:
        """Forward and backward. Dropout is keyed by `key` and the micro-batch's number, not by its thread; without a
        key there is none."""
        objective = self.objective
        parts = objective.micro_batches(batch)
        counted = [objective.counts(part) for part in parts]
        counts = {name: sum(part.get(name, 0) for part in counted) for name in objective.losses}
        self.count = counts[objective.main] or 1
        # each loss is divided by its own count; together they are divided by self.count when the step is taken
        factors = {name: weight * self.count / counts[name] if counts[name] else 0.0
                   for name, weight in objective.losses.items()}
        self._sum.begin(len(parts))

        def one(number: int) -> Mapping[str, Any]:
            grads = self._sum.micro_batch(number)
            with np.errstate(over="ignore", invalid="ignore"):        # what is not finite is noticed, and skipped
                sums = objective.add_gradients(parts[number], grads, (*key, number) if key else None, factors)
            grads.finish()
            return sums

        mine, failed = list[Mapping[str, Any]](), None
        try:
            mine = self.workers.map(one, self._sum.numbers)
        except NumericalError as error:
            failed = error
        sums = self._sum.finish(mine, failed, self.workers)
        others = dict.fromkeys(name for part in sums for name in part if name not in counts)
        self.tallies = {name: sum(part[name] for part in sums if name in part) for name in others}
        return {name: Loss(sum(part.get(name, 0.0) for part in sums), count) for name, count in counts.items()}


class Update(Generic[Batch, Part]):
    """The step that an objective and an optimiser take together; without `clipping`, by the gradients as they are."""

    def __init__(self, objective: Objective[Batch, Part], optimiser: Optimiser, workers: Workers, *,
                 clipping: Clipping | None = None):
        self.objective = objective
        self.batch_gradients = BatchGradients(objective, workers, optimiser.processes, optimiser.shards)
        self.optimiser, self.workers, self.clipping = optimiser, workers, clipping

    def step(self, batch: Batch, key: tuple[Any, ...], rate: float, measure: bool = False) -> StepResult:
        """Losses, gradients and the optimiser's step, unless something is not finite: then nothing moves."""
        try:
            losses = self.batch_gradients.compute(batch, *key)
        except NumericalError:
            nan = float("nan")
            return StepResult({}, Loss(nan, 1), nan, nan, finite=False)
        return self.apply(losses, rate, measure)

    def apply(self, losses: Losses, rate: float, measure: bool = False) -> StepResult:
        """The optimiser's step by the gradients that were computed with these losses."""
        gradients, count = self.batch_gradients.gradients, self.batch_gradients.count
        total = sum(weight * losses[name].mean for name, weight in self.objective.losses.items() if weight)
        norm = self.optimiser.grad_norm(gradients, self.workers) / count
        result = StepResult(losses, losses[self.objective.main], total, norm, tallies=self.batch_gradients.tallies)
        if not (isfinite(total) and isfinite(norm) and any(loss.count for loss in losses.values())):
            return result._replace(finite=False)
        scale = 1 / count if self.clipping is None else self.clipping(gradients, norm, count, self.workers)
        measures = self.optimiser.step(gradients, learning_rate=rate, scale=scale, workers=self.workers,
                                       measure=measure)
        self.optimiser.gather()
        return result._replace(measures=measures)
