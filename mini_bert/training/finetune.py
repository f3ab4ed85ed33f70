"""Fine-tuning: all parameters of a model with a task's head, by the task's own examples.

    epochs of batches of similar length -> loss and gradients -> clipping -> AdamW;   after each epoch, or more often,
    the task's own figure on the development set; the best parameters are kept, and training ends early if they
    do not improve

The parameters of the MLM head take no part: neither the gradient nor weight decay moves them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, isfinite
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ..core.model import DropoutKey
from ..core.params import Gradients
from ..core.task_model import TaskBatch, TaskModel
from ..errors import ConfigError, DataError, NumericalError
from ..randomness import generator
from ..settings import Settings
from .batch_gradients import ParallelGradients
from .optimisers.adamw import AdamW, clip_factor
from .param_groups import rate_factors
from .schedules import SCHEDULES, learning_rate
from .workers import Workers, workers

_POOL = 50                    # batches whose examples are sorted by length together


@dataclass(frozen=True)
class FinetuneConfig(Settings):
    TITLE: ClassVar[str] = "The fine-tuning config"

    epochs: int = 5
    batch_size: int = 32
    micro_batch_size: int = 16            # sequences that one thread computes at a time
    learning_rate: float = 5e-4
    schedule: str = "linear"
    warmup_share: float = 0.1             # of all steps
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    layer_decay: float = 1.0              # factor of the learning rate from each layer to the one below it
    freeze: str = ""                      # parts or parameters that stay, such as "embeddings layer_0"
    dropout: float = 0.1                  # of the encoder and in front of the head
    evaluations: int = 1                  # in each epoch
    patience: int = 3                     # evaluations without a better figure before training ends; 0: never
    recompute: bool = False               # save memory: compute each layer's activations again in the backward
    threads: int = 0                      # 0: all cores
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least in (("epochs", 1), ("batch_size", 1), ("micro_batch_size", 1), ("evaluations", 1),
                            ("patience", 0), ("threads", 0), ("learning_rate", 0), ("max_grad_norm", 0), ("seed", 0)):
            if not least <= getattr(self, name) < float("inf"):
                raise ConfigError(f"{name} must be at least {least}, not {getattr(self, name)}.")
        for name in ("dropout", "warmup_share"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name} must be in [0, 1), not {getattr(self, name)}.")
        if not 0 < self.layer_decay <= 1:
            raise ConfigError(f"layer_decay must be above 0 and at most 1, not {self.layer_decay}.")
        if self.schedule not in SCHEDULES:
            raise ConfigError(f"schedule: {self.schedule!r} is not a choice; choose one of {', '.join(SCHEDULES)}.")


@dataclass(frozen=True)
class Progress:
    """Where a fine-tuning stands, for a display."""

    step: int
    total: int
    epoch: int
    loss: float               # smoothed
    score: float | None       # of the last evaluation
    best: float | None


@dataclass(frozen=True)
class Finetuned:
    """What came of it; the model holds the best parameters."""

    best: float               # the figure of the best evaluation
    scores: list[float]       # of all evaluations
    steps: int
    stopped_early: bool


# the numbers of some examples -> one batch of them
Collate = Callable[[npt.NDArray[np.int64]], TaskBatch]


def finetune(model: TaskModel, lengths: Sequence[int], collate: Collate, score: Callable[[TaskModel], float],
             config: FinetuneConfig, *, progress: Callable[[Progress], None] | None = None) -> Finetuned:
    """Train `model` on examples of these lengths (tokens); `score` gives the figure to raise, on data of its own."""
    if not len(lengths):
        raise DataError("There are no examples to train on.")
    per_epoch = ceil(len(lengths) / config.batch_size)
    total = config.epochs * per_epoch
    factors = rate_factors(model, config.layer_decay, config.freeze)
    unused = [name for name in (*model.params, *model.params.ties) if name.startswith("mlm_")]
    factors |= {name: 0.0 for name in unused if name in factors}
    optimiser = AdamW(model.params, config.learning_rate, weight_decay=config.weight_decay, factors=factors)
    best, kept, scores, since = float("-inf"), model.params.flat.copy(), list[float](), 0
    smoothed: float | None = None
    step = 0
    with workers(config.threads) as team:
        gradients = ParallelGradients(model.params, team, _loss(model, config), unused)
        for epoch in range(config.epochs):
            ends = {round(per_epoch * (i + 1) / config.evaluations) for i in range(config.evaluations)}
            for number, batch in enumerate(_batches(lengths, config, epoch), 1):
                loss = _step(model, gradients, optimiser, batch, collate, step, total, config, team)
                smoothed = loss if smoothed is None else 0.98 * smoothed + 0.02 * loss
                step += 1
                if number in ends:
                    model.set_training(False)
                    scores.append(score(model))
                    since += 1
                    if scores[-1] > best:
                        best, since = scores[-1], 0
                        kept[...] = model.params.flat
                if progress is not None:
                    progress(Progress(step, total, epoch, smoothed, scores[-1] if scores else None,
                                      best if scores else None))
                if config.patience and since >= config.patience:
                    break
            if config.patience and since >= config.patience:
                break
    model.set_training(False)
    model.params.flat[...] = kept
    return Finetuned(best, scores, step, step < total)


def _loss(model: TaskModel, config: FinetuneConfig) -> Callable[[TaskBatch, Gradients, DropoutKey], tuple[float, int]]:
    def loss(part: TaskBatch, grads: Gradients, dropout_key: DropoutKey) -> tuple[float, int]:
        return model.add_gradients(part, grads, dropout_key, recompute=config.recompute)

    return loss


def _step(model: TaskModel, gradients: ParallelGradients[TaskBatch], optimiser: AdamW, batch: npt.NDArray[np.int64],
          collate: Collate, step: int, total: int, config: FinetuneConfig, team: Workers) -> float:
    """One step; its mean loss."""
    model.set_training(True)
    size = config.micro_batch_size
    parts = [collate(batch[start : start + size]) for start in range(0, len(batch), size)]
    loss = gradients.compute_parts(parts, config.seed, step)
    norm = optimiser.grad_norm(gradients.gradients, team) / max(loss.masked, 1)
    if not (isfinite(loss.total) and isfinite(norm)):
        raise NumericalError(f"Step {step} of the fine-tuning has no finite loss or gradient; try a lower learning "
                             f"rate (it was {config.learning_rate:g}).")
    rate = learning_rate(step, total, peak=config.learning_rate, schedule=config.schedule,
                         warmup=int(config.warmup_share * total))
    optimiser.step(gradients.gradients, learning_rate=rate, workers=team,
                   scale=clip_factor(norm, config.max_grad_norm) / max(loss.masked, 1))
    return loss.mean


def _batches(lengths: Sequence[int], config: FinetuneConfig, epoch: int) -> list[npt.NDArray[np.int64]]:
    """All examples once, in batches of similar length and in random order."""
    rng = generator(config.seed, "finetune", epoch)
    order, sizes = rng.permutation(len(lengths)), np.asarray(lengths)
    pool = _POOL * config.batch_size
    batches = []
    for start in range(0, len(order), pool):
        some = order[start : start + pool]
        some = some[np.argsort(sizes[some], kind="stable")]
        batches += [some[i : i + config.batch_size] for i in range(0, len(some), config.batch_size)]
    return [batches[i] for i in rng.permutation(len(batches))]
