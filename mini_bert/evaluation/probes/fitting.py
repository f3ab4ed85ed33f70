"""Training a probe: epochs of batches, a learning rate that is halved when an epoch brings no improvement on the
development set, and the parameters of the best epoch in the end."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...objectives.objective import Objective
from ...training.loop import Loop, State
from ...training.optimisers.adamw import AdamW
from ...training.update import StepResult, Update
from ...workers import Workers


class Schedule(NamedTuple):
    learning_rate: float
    max_epochs: int
    halvings: int             # of the learning rate before training ends
    weight_decay: float = 0.0


class Fitted(NamedTuple):
    best: float               # the highest score
    epochs: int


class _Epochs:
    """Batches by step, made epoch by epoch."""

    def __init__(self, make: Callable[[int], Sequence[Any]]):
        self._make, self._epoch, self._batches = make, 0, make(0)
        self.per_epoch = len(self._batches)

    def __getitem__(self, step: int) -> Any:
        epoch, number = divmod(step, self.per_epoch)
        if epoch != self._epoch:
            self._epoch, self._batches = epoch, self._make(epoch)
        return self._batches[number]


def fit_probe(objective: Objective[Any, Any], batches_of: Callable[[int], Sequence[Any]], score: Callable[[], float],
              schedule: Schedule) -> Fitted:
    """Train the objective's parameters on the batches of each epoch; `score()` is the figure to raise."""
    params = objective.params
    batches, rate, halvings = _Epochs(batches_of), schedule.learning_rate, 0
    best, best_flat = float("-inf"), params.flat.copy()
    state = State(total_steps=schedule.max_epochs * batches.per_epoch)

    def after(result: StepResult, batch: Any) -> bool:
        nonlocal best, rate, halvings
        if state.step % batches.per_epoch:
            return False
        if (figure := score()) > best:
            best, best_flat[...] = figure, params.flat
        else:
            rate, halvings = rate / 2, halvings + 1
        return halvings > schedule.halvings

    update = Update(objective, AdamW(params, weight_decay=schedule.weight_decay), Workers(1))
    Loop(update, batches, lambda step: rate, state).run(after)
    params.flat[...] = best_flat
    return Fitted(best, state.step // batches.per_epoch)
