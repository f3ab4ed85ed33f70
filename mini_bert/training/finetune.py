"""Fine-tuning: all parameters of a model with a task's head, by the task's own examples.

    epochs of batches of similar length -> loss and gradients -> clipping -> optimiser;   after each epoch, or more
    often, the task's own figure on the development set; the best parameters are kept, and training ends early if they
    do not improve

The parameters of the MLM head take no part: neither the gradient nor weight decay moves them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..core.registry import make
from ..core.task_model import TaskModel
from ..errors import ConfigError, DataError, NumericalError
from ..objectives.objective import Objective, PassOptions
from ..objectives.task import TaskLoss
from ..parallel.processes import from_first, give_all, world
from ..randomness import generator
from ..settings import Settings
from ..workers import workers
from .clipping.clipping import USUAL_NORM, check_clipping, clipping_from, runs_together
from .config import TrainingConfig, make_optimiser
from .loop import Loop, State
from .optimisers.making import optimiser_words
from .optimisers.optimiser import Optimiser
from .schedules import check_schedule, learning_rate
from .update import StepResult, Update

_POOL = 50                    # batches whose examples are sorted by length together


@dataclass(frozen=True)
class FinetuneConfig(Settings):
    TITLE: ClassVar[str] = "The fine-tuning config"

    epochs: int = 5
    batch_size: int = 32
    micro_batch_size: int = 16            # sequences that one thread computes at a time
    optimiser: str = "adamw"
    learning_rate: float = 5e-4
    schedule: str = "linear"
    warmup_share: float = 0.1             # of all steps
    weight_decay: float = 0.01
    clipping: str = "norm"                # by the global norm, or adaptive(limit=0.01): by unit
    max_grad_norm: float = USUAL_NORM     # for norm; 0: no clipping
    moments: str = "float32"              # how the optimiser's are stored, or bfloat16: in half the memory
    layer_decay: float = 1.0              # factor of the learning rate from each layer to the one below it
    freeze: str = ""                      # parts or parameters that stay, such as "embeddings layer_0"
    dropout: float = 0.1                  # of the encoder and in front of the head
    evaluations: int = 1                  # in each epoch
    patience: int = 3                     # evaluations without a better figure before training ends; 0: never
    recompute: bool = False               # save memory: compute each layer's activations again in the backward
    activations: str = "float32"          # how what the backward needs is stored, or bfloat16: in half the memory
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
        optimiser_words(self.optimiser)
        check_clipping(self.clipping)
        make("moments", self.moments)
        make("activations", self.activations)
        check_schedule(self.schedule)

    def passes(self) -> PassOptions:
        """How passes are run."""
        return PassOptions(self.micro_batch_size, recompute=self.recompute, activations=self.activations)


@dataclass(frozen=True)
class Progress:
    """Where a fine-tuning stands, for a display."""

    step: int
    total: int
    epoch: int
    loss: float               # smoothed
    score: float | None       # of the last evaluation
    best: float | None
    evaluated: bool = False   # behind this very step


@dataclass(frozen=True)
class Finetuned:
    """What came of it; the model holds the best parameters."""

    best: float               # the figure of the best evaluation
    scores: list[float]       # of all evaluations
    steps: int
    stopped_early: bool


# the numbers of some examples -> one batch of them, a TaskBatch unless the objective is another than TaskLoss
Collate = Callable[[npt.NDArray[np.int64]], Any]


def finetune(model: TaskModel, lengths: Sequence[int], collate: Collate, score: Callable[[TaskModel], float],
             config: FinetuneConfig, *, progress: Callable[[Progress], bool | None] | None = None,
             objective: Objective[Any, Any] | None = None) -> Finetuned:
    """Train `model` on examples of these lengths (tokens); `score` gives the figure to raise, on data of its own.

    `objective` is the cross-entropy of the labels unless given.
    """
    if not len(lengths):
        raise DataError("There are no examples to train on.")
    batches = _EpochBatches(lengths, collate, config)
    per_epoch = len(batches)
    state = State(total_steps=config.epochs * per_epoch)
    ends = {round(per_epoch * (i + 1) / config.evaluations) for i in range(config.evaluations)}
    best, kept, scores, since = float("-inf"), model.params.flat.copy(), list[float](), 0
    processes = world()
    give_all(processes, model.params.flat)

    def after(result: StepResult, batch: Sequence[Any]) -> bool:
        nonlocal best, since
        evaluates = (state.step - 1) % per_epoch + 1 in ends
        if evaluates:
            with update.optimiser.evaluation_weights():
                scores.append(from_first(processes, lambda: score(model)))
                since += 1
                if scores[-1] > best:
                    best, since = scores[-1], 0
                    kept[...] = model.params.flat
        stops = False if progress is None else progress(Progress(
            state.step, state.total_steps, (state.step - 1) // per_epoch, state.mean_loss,
            scores[-1] if scores else None, best if scores else None, evaluates))
        if progress is not None:                  # whose clock differs
            stops = any(processes.share(bool(stops)))
        if stops and not scores:                  # there is no better model than the present one
            kept[...] = model.params.flat
        return bool(stops or (config.patience and since >= config.patience))

    def rate(step: int) -> float:
        return learning_rate(step, state.total_steps, peak=config.learning_rate, schedule=config.schedule,
                             warmup=int(config.warmup_share * state.total_steps))

    with workers(config.threads) as team:
        learned = TaskLoss(model, config.passes()) if objective is None else objective
        optimiser = task_optimiser(model, config)
        clipping = clipping_from(config.clipping, learned.params, config.max_grad_norm)
        optimiser.divide(processes, runs_together(clipping, processes))
        update = Update(learned, optimiser, team, clipping=clipping)
        try:
            Loop(update, batches, rate, state, seed=config.seed).run(after)
        except NumericalError as error:
            raise NumericalError(f"{error} Try a lower learning rate (it was {config.learning_rate:g}).") from None
    model.params.flat[...] = kept
    return Finetuned(best, scores, state.step, state.step < state.total_steps)


def task_optimiser(model: TaskModel, config: FinetuneConfig) -> Optimiser:
    """Of all parameters but those of the other heads, which stay as they are."""
    heads = [name for name, spec in model.params.specs.items() if spec.component in ("mlm_head", "sentence_head")]
    return make_optimiser(TrainingConfig(optimiser=config.optimiser, learning_rate=config.learning_rate,
                                         weight_decay=config.weight_decay, moments=config.moments,
                                         layer_decay=config.layer_decay,
                                         freeze=" ".join([config.freeze, *heads])), model.params)


class _EpochBatches:
    """Batches of similar length, each as its micro-batches; all examples once in every epoch, in random order."""

    def __init__(self, lengths: Sequence[int], collate: Collate, config: FinetuneConfig):
        self.lengths, self.collate, self.config = lengths, collate, config
        self._epoch: tuple[int, list[npt.NDArray[np.int64]]] = (-1, [])

    def __len__(self) -> int:
        return ceil(len(self.lengths) / self.config.batch_size)

    def __getitem__(self, step: int) -> list[Any]:
        epoch, number = divmod(step, len(self))
        if self._epoch[0] != epoch:
            self._epoch = epoch, _batches(self.lengths, self.config, epoch)
        batch, size = self._epoch[1][number], self.config.micro_batch_size
        return [self.collate(batch[start : start + size]) for start in range(0, len(batch), size)]


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
