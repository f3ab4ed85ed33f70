"""Gradient checks of the heads of tasks and of objectives, each on a small encoder, with padding and dropout."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core.config import MASK, ModelConfig
from ..core.gradcheck import CheckResult
from ..core.model import MiniBERT
from ..core.params import Gradients
from ..core.registry import find, parse_sum
from ..core.task_model import TaskBatch, TaskModel
from ..objectives.making import objective_from
from ..objectives.objective import PassOptions
from ..randomness import generator
from .models import check_directions

LABELS = 3


def check_task_head(head: str, config: ModelConfig, seed: int = 0) -> Iterator[CheckResult]:
    """Every parameter's gradient of a task's cross-entropy. `config` should have a smooth activation: ReLU has a
    kink."""
    yield from _check_task(f"task head: {head}", head, "cross_entropy", config, seed)


def check_task_loss(loss: str, config: ModelConfig, seed: int = 0) -> Iterator[CheckResult]:
    """Every parameter's gradient of another loss of a head for sequences."""
    yield from _check_task(f"task loss: {loss}", "sequence", loss, config, seed)


def _check_task(subject: str, head: str, loss: str, config: ModelConfig, seed: int) -> Iterator[CheckResult]:
    rng = generator(seed, "taskcheck", head)
    model = TaskModel(MiniBERT(config, dtype=np.float64, seed=int(rng.integers(2**32))), head, LABELS, dropout=0.2,
                      loss=loss)
    model.params.flat += 0.1 * rng.standard_normal(model.params.flat.size)
    B, T = 3, 7
    mask = np.arange(T) < np.array([T, T - 3, 2])[:, None]
    ids = rng.integers(MASK + 1, config.vocab_size, (B, T))
    places = mask & (rng.random((B, T)) < 0.7)
    places[:, 1] = True
    classes = model.task.example_targets(model.task.reads(mask, places), rng)
    batch = TaskBatch(ids, mask, model.loss.example_targets(classes, model.task.outputs, rng), places)

    def summed(grads: Gradients) -> float:
        return model.add_gradients(batch, grads, (seed, 0))[0]

    yield from check_directions(subject, "padding, dropout", model, model.params, summed, rng)


def check_objective(word: str, config: ModelConfig, seed: int = 0, sequences: str = "packed") -> Iterator[CheckResult]:
    """Every parameter's gradient of an objective's losses, each times a random factor, on its small example.

    `sequences` is the training config's word, by which objectives of a sum may share a pass.
    """
    rng = generator(seed, "objective check", word)
    named = [find("objective", part.name).named for _, part in parse_sum(word, "objective")]
    for one in named:
        config = ModelConfig.from_dict({**config.to_dict(), **getattr(one, "needs", {})})
    model = MiniBERT(config, dtype=np.float64, seed=int(rng.integers(2**32)))
    settings: dict[str, Any] = {"sequences": sequences}
    for one in named:
        settings |= one.example_settings(config, np.float64, seed + 1) if hasattr(one, "example_settings") else {}
    objective = objective_from(word, model, PassOptions(micro_batch_size=2), **settings)
    objective.params.flat += 0.1 * rng.standard_normal(objective.params.flat.size)
    parts = objective.micro_batches(objective.example(rng))
    factors = {name: float(rng.uniform(0.5, 2.0)) for name in objective.losses}

    def loss(grads: Gradients) -> float:
        sums = [objective.add_gradients(part, grads, (seed, number), factors) for number, part in enumerate(parts)]
        return sum(factor * float(part.get(name, 0.0)) for part in sums for name, factor in factors.items())

    yield from check_directions(f"objective: {word}", "padding, dropout", model, objective.params, loss, rng)
