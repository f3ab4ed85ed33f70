"""Run a task: several seeds, the same from random weights, the baselines, and a learning curve."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...core.config import ModelConfig
from ...core.model import MiniBERT
from ...core.modules.heads.tasks import Answers, TaskHead
from ...core.registry import make
from ...core.task_model import TaskModel, with_dropout
from ...errors import ConfigError, DataError
from ...parallel.processes import from_first, world
from ...training.finder import Search, find_finetuning_rate
from ...training.finetune import FinetuneConfig, Finetuned, Progress, finetune
from ...workers import workers
from ..result import Result
from ..statistics import Interval, over_seeds
from .encode import Encoded
from .task_names import Task
from .teaching import Taught

_SMALL = 10_000_000           # parameters; smaller models use a higher learning rate
_LEARNED = 0.8                # share of the training data that a search for a learning rate learns from
Announce = Callable[[str], Callable[[Progress], bool | None] | None]     # name of a run -> callback for its progress


@dataclass(frozen=True)
class TaskResult(Result):
    """The metrics of a task by seed, from random weights, of the baselines, and by share of the training data."""

    also = ("measured_on", "mean")

    figures: dict[str, list[float]]               # metric -> one value per seed; the first is the main one
    from_random: dict[str, list[float]]
    baselines: dict[str, float]
    curve: dict[float, float] = field(default_factory=dict)       # share of the training data -> the main metric
    notes: dict[str, Any] = field(default_factory=dict)
    steps: list[int] = field(default_factory=list)
    dev_figures: dict[str, list[float]] = field(default_factory=dict)     # if there is a test set
    labels_alone: dict[str, list[float]] = field(default_factory=dict)    # without the teacher, if there is one

    @property
    def measured_on(self) -> str:
        """The set that `figures` were measured on: test, or dev if there is no test set."""
        return "test" if self.dev_figures else "dev"

    @property
    def measured(self) -> int:
        """The number of examples that `figures` were measured on."""
        return int(self.notes[self.measured_on])

    @property
    def main(self) -> str:
        return next(iter(self.figures))

    @property
    def mean(self) -> dict[str, Interval]:
        """The mean of each metric over the seeds."""
        return {name: over_seeds(values) for name, values in self.figures.items()}


def usual_learning_rate(model: MiniBERT) -> float:
    """A learning rate that suits most tasks, by the size of the model."""
    return 7e-4 if model.get_parameter_count() < _SMALL else 5e-5


def run_task(task: Task[Any], model: MiniBERT, config: FinetuneConfig, *, seeds: Sequence[int] = (0,),
             head: str | None = None, random_init: bool = True, shares: Sequence[float] = (),
             teaching: Taught | None = None, labels_alone: bool = True,
             announce: Announce = lambda name: None) -> tuple[TaskResult, TaskModel]:
    """Fine-tune `model` for the task; the result, and the model of the best seed by the development set.

    `head` is the word of another head than the task's usual one. With `teaching`, a teacher's scores are learned too,
    and `labels_alone` also trains without them.
    """
    head = task.head if head is None else head
    require_head(head, task.answers, model.config)
    train = task.train if teaching is None else teaching
    figures: dict[str, list[float]] = {}
    on_dev: dict[str, list[float]] = {}
    best: TaskModel | None = None
    highest = float("-inf")
    steps = []
    for seed in seeds:
        tuned, outcome, found = _once(task, model, head, replace(config, seed=seed), train,
                                      announce(f"seed {seed}"))
        steps.append(outcome.steps)
        if best is None or outcome.best > highest:
            best, highest = tuned, outcome.best
        _collect(figures, found)
        if task.has_test:
            with workers(config.threads) as team:
                _collect(on_dev, task.dev_figures(tuned, team))
    assert best is not None
    others: dict[str, list[float]] = {}
    if random_init:
        for seed in seeds:
            fresh = MiniBERT(model.config, seed=seed)
            _, _, found = _once(task, fresh, head, replace(config, seed=seed), train,
                                announce(f"random weights, seed {seed}"))
            _collect(others, found)
    untaught: dict[str, list[float]] = {}
    for seed in seeds if teaching is not None and labels_alone else ():
        _, _, found = _once(task, model, head, replace(config, seed=seed), task.train,
                            announce(f"labels alone, seed {seed}"))
        _collect(untaught, found)
    curve = {}
    for share in shares:
        _, _, found = _once(task, model, head, replace(config, seed=seeds[0]), task.reduced(share, seeds[0]),
                            announce(f"{share:.0%} of the data"))
        curve[share] = next(iter(found.values()))
    if shares:
        curve[1.0] = next(iter(figures.values()))[0]
    return TaskResult(figures, others, task.baselines(), curve, task.notes, steps, on_dev, untaught), best


def find_rate(task: Task[Any], model: MiniBERT, config: FinetuneConfig, *, head: str | None = None,
              progress: Callable[[int, int], None] | None = None) -> Search:
    """Search for a learning rate: trials on four fifths of the training data, measured on the rest.

    The development and the test set take no part, so their figures stay honest.
    """
    learned = task.reduced(_LEARNED, config.seed)
    measured = task.train.of(set(task.train.owners) - set(learned.owners))
    if not measured.rows:
        raise DataError("The training data has a single example, too few to search for a learning rate.")
    size = config.micro_batch_size
    parts = [measured.collate(np.arange(start, min(start + size, len(measured.rows))))
             for start in range(0, len(measured.rows), size)]
    tuned = _tunable(task, model, task.head if head is None else head, config)
    return find_finetuning_rate(tuned, learned.lengths, learned.collate, parts, config, progress=progress)


def _tunable(task: Task[Any], model: MiniBERT, head: str, config: FinetuneConfig) -> TaskModel:
    """The model with a new head, and dropout."""
    return TaskModel(with_dropout(model, config.dropout), head, task.outputs, dropout=config.dropout, seed=config.seed,
                     loss=task.loss)


def require_head(word: str, answers: Answers, config: ModelConfig) -> None:
    """Refuse a head that does not choose what a task asks for."""
    chosen: TaskHead = make("task_head", word, config, 2, 0.0)
    if chosen.answers is not answers:
        raise ConfigError(f"The head {word} gives {chosen.answers.value}; this task needs {answers.value}.")


def _once(task: Task[Any], model: MiniBERT, head: str, config: FinetuneConfig, train: Encoded | Taught,
          progress: Callable[[Progress], bool | None] | None) -> tuple[TaskModel, Finetuned, dict[str, float]]:
    """One run, and its figures on the set to measure on."""
    tuned, outcome = tune(task, model, config, head=head, train=train, progress=progress)
    with workers(config.threads) as team:
        return tuned, outcome, from_first(world(), lambda: task.figures(tuned, team))


def tune(task: Task[Any], model: MiniBERT, config: FinetuneConfig, *, head: str | None = None,
         train: Encoded | Taught | None = None,
         progress: Callable[[Progress], bool | None] | None = None) -> tuple[TaskModel, Finetuned]:
    """Fine-tune a copy of `model` once, on the task's training data or on `train`, stopping by its development set."""
    head, train = task.head if head is None else head, task.train if train is None else train
    tuned = _tunable(task, model, head, config)

    def score(network: TaskModel) -> float:
        with workers(config.threads) as team:
            return next(iter(task.dev_figures(network, team).values()))

    objective = train.objective(tuned, config.passes()) if isinstance(train, Taught) else None
    return tuned, finetune(tuned, train.lengths, train.collate, score, config, progress=progress, objective=objective)


def _collect(into: dict[str, list[float]], found: dict[str, float]) -> None:
    for name, value in found.items():
        into.setdefault(name, []).append(float(np.round(value, 6)))
