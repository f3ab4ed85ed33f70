"""Finding a learning rate: short runs at many rates from the same start, longer ones at the better rates.

A trial is a real run made short: it has a warm-up, the config's schedule and the first batches of the real run, and is
measured on batches that come after them. All trials see and are measured on the same batches, so what makes one batch
harder than another cancels. (The usual test, one run whose rate rises from step to step, compares the losses of
different batches. From a start that already knows the frequencies of words, a hundred steps lower the loss by less than
the batches differ.)

Trials are of a quarter of the steps at first; half of the rates, those with the lower losses, go on to trials of twice
as many steps, until at most three are left.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from math import ceil, inf, isfinite, log10
from typing import Any

import numpy as np

from ..core.model import MiniBERT
from ..core.task_model import TaskBatch, TaskModel
from ..errors import ConfigError, NumericalError
from ..objectives.objective import Batches, CorpusObjective
from ..objectives.task import TaskLoss
from ..randomness import generator
from ..workers import workers
from .config import TrainingConfig, make_objective
from .finetune import Collate, FinetuneConfig, finetune
from .trainer import Trainer

MOST_STEPS = 100_000          # of a trial
_PER_DECADE = 2               # rates: 1, 3.2, 10, ...
_FINALISTS = 3
_WARMUP = 0.1                 # of a trial's steps
_MEASURED = 8                 # batches that a trial is measured on

Heard = Callable[[int, int], None]        # steps done, and of how many


@dataclass(frozen=True)
class Search:
    """The rates and the loss of the longest trial of each, with its steps; the best rate; the lowest rate above
    it whose trial ended above the loss of the start."""

    rates: list[float]
    losses: list[float]       # infinite where training broke off
    steps: list[int]
    start: float              # the loss before any step
    suggestion: float
    burst: float | None

    @property
    def at_the_edge(self) -> bool:
        """Is the suggestion the lowest or the highest of all rates? A better one may lie beyond."""
        return self.suggestion in (self.rates[0], self.rates[-1])


def find_learning_rate(model: MiniBERT, batches: Batches[Any], config: TrainingConfig, *, low: float = 1e-5,
                       high: float = 1.0, steps: int = 100, objective: CorpusObjective[Any, Any] | None = None,
                       progress: Heard | None = None) -> Search:
    """The best rate from `low` to `high` for pre-training, by the loss that the objective minimises.

    The longest trials have `steps` steps. `objective` is the one that made the batches; the config's own if it is not
    given. It and the model end as they began.
    """
    rates = _rates(low, high, steps)
    config = config.resolved(model.config)
    objective = make_objective(config, model) if objective is None else objective
    made, before, state = objective, objective.params.flat.copy(), deepcopy(objective.state())
    parts = [part for step in range(steps, steps + _MEASURED) for part in objective.micro_batches(batches[step])]

    def train(rate: float, length: int) -> int:
        settings = replace(config, steps=length, budget="", learning_rate=rate,
                           warmup_steps=max(1, round(_WARMUP * length)))
        return sum(1 for _ in Trainer(model, _Beginning(batches), settings, objective=made).steps())

    def undo() -> None:
        made.params.flat[...] = before
        made.restore(deepcopy(state))

    return _search(train, lambda: _loss(made, parts, config.threads), undo, rates, steps, progress)


def find_finetuning_rate(model: TaskModel, lengths: Sequence[int], collate: Collate, heldout: Sequence[TaskBatch],
                         config: FinetuneConfig, *, low: float = 1e-5, high: float = 1.0, steps: int = 100,
                         progress: Heard | None = None) -> Search:
    """The best rate for fine-tuning on examples of these lengths, by the lowest loss on other examples, `heldout`.

    The longest trials have about `steps` steps, but no more epochs than the config; a trial that is shorter than an
    epoch has only some of the examples. The model ends as it began.
    """
    rates = _rates(low, high, steps)
    before, objective, per_epoch = model.params.flat.copy(), TaskLoss(model), ceil(len(lengths) / config.batch_size)
    order = generator(config.seed, "find-lr").permutation(len(lengths))

    def loss() -> float:
        return _loss(objective, heldout, config.threads)

    def train(rate: float, length: int) -> int:
        some = order[: length * config.batch_size]
        settings = replace(config, learning_rate=rate, epochs=max(1, round(length / per_epoch)), evaluations=1,
                           patience=0)
        return finetune(model, [lengths[i] for i in some], lambda numbers: collate(some[numbers]),
                        lambda tuned: -loss(), settings).steps

    def undo() -> None:
        model.params.flat[...] = before

    return _search(train, loss, undo, rates, min(steps, config.epochs * per_epoch), progress)


class _Beginning:
    """Batches as they are at the beginning of a run, where settings change over it."""

    def __init__(self, batches: Batches[Any]):
        self.batches = batches

    def __getitem__(self, step: int) -> Any:
        return self.batches[int(step)]


def _rates(low: float, high: float, steps: int) -> list[float]:
    if not 0 < low < high < inf or not 10 <= steps <= MOST_STEPS:
        raise ConfigError(f"A search needs 0 < low < high and 10 to {MOST_STEPS} steps, not {low}, {high} and "
                          f"{str(steps)[:40]}.")
    return [float(rate) for rate in np.geomspace(low, high, max(2, round(_PER_DECADE * log10(high / low)) + 1))]


def _loss(objective: CorpusObjective[Any, Any] | TaskLoss, parts: Sequence[Any], threads: int) -> float:
    """What a step minimises, over these parts and without dropout."""
    with workers(threads) as team:
        figures = objective.evaluate(parts, team)
    return sum(weight * figures[name] for name, weight in objective.losses.items() if weight)


def _search(train: Callable[[float, int], int], measure: Callable[[], float], undo: Callable[[], None],
            rates: list[float], steps: int, progress: Heard | None) -> Search:
    """Successive halving.

    `train` takes about the given number of steps at a rate and returns how many it took, `measure` gives the loss,
    `undo` restores the start.
    """

    def trial(rate: float, length: int) -> tuple[float, int]:
        taken = length
        try:
            taken = train(rate, length)
            loss = measure()
        except NumericalError:
            return inf, taken
        finally:
            undo()
        return loss if isfinite(loss) else inf, taken

    rounds = [len(rates)]
    while rounds[-1] > _FINALISTS:
        rounds.append(ceil(rounds[-1] / 2))
    lengths = [max(1, steps >> (len(rounds) - 1 - number)) for number in range(len(rounds))]
    total, done = sum(count * length for count, length in zip(rounds, lengths, strict=True)), 0
    start, left, found = measure(), list(rates), dict[float, tuple[float, int]]()
    for count, length in zip(rounds, lengths, strict=True):
        left = sorted(sorted(left, key=lambda rate: found[rate] if found else (0.0, 0))[:count])
        for rate in left:
            found[rate] = trial(rate, length)
            done += length
            if progress is not None:
                progress(done, total)
    best = min(left, key=lambda rate: found[rate])
    burst = min((rate for rate, (loss, _) in found.items() if rate > best and loss > start), default=None)
    return Search(rates, [found[rate][0] for rate in rates], [found[rate][1] for rate in rates], start, best, burst)
