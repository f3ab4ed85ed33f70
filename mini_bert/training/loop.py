"""The training loop: one update after the other, and whoever listens.

    batch -> update (loss, gradients, clipping, optimiser) -> listeners

A step depends on the parameters, the optimiser's state, the seed and its number, and on nothing else.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields
from math import isfinite
from time import perf_counter
from typing import Any, Generic, Self

from ..errors import CheckpointError, CorpusError, NumericalError
from ..objectives.objective import Batch, Batches, Loss, Losses, Part
from ..text.schedule import Step
from .update import StepResult, Update

_SMOOTHING = 0.98


@dataclass
class State:
    """The state of training: everything that a resumed run needs besides the parameters and the optimiser's state."""

    step: int = 0             # steps done
    total_steps: int = 0
    optimiser_steps: int = 0  # without those that were skipped
    tokens: int = 0
    seconds: float = 0.0      # of all sessions
    smoothed_loss: float = 0.0
    smoothing: float = 0.0    # weight of the smoothed loss so far
    best_loss: float = float("inf")
    best_step: int = 0
    evaluations: int = 0      # done, of config.evaluations
    snapshot_step: int = 0    # of the last snapshot
    skipped: int = 0
    bad_in_a_row: int = 0
    unlogged: Losses = field(default_factory=dict)    # the sums of the steps since the last line of the log

    def smooth(self, loss: float) -> None:
        self.smoothed_loss = _SMOOTHING * self.smoothed_loss + (1 - _SMOOTHING) * loss
        self.smoothing = _SMOOTHING * self.smoothing + (1 - _SMOOTHING)

    @property
    def mean_loss(self) -> float:
        """The smoothed loss, whatever the number of steps so far."""
        return self.smoothed_loss / self.smoothing if self.smoothing else 0.0

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "best_loss": self.best_loss if isfinite(self.best_loss) else None}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "State":
        """A state that `to_json` wrote; other keys, and values of another type, are refused."""
        kinds = {field.name: type(field.default) for field in fields(cls)}
        unlogged = _losses(values.get("unlogged", {}))        # an older checkpoint has none
        for name, value in values.items():
            if name not in kinds:
                raise CheckpointError(f"The checkpoint's state has the key {name[:100]!r}, which this version does not "
                                      "know.")
            if name == "unlogged" or (name == "best_loss" and value is None):
                continue
            number = type(value) is int or (kinds[name] is float and type(value) is float and isfinite(value))
            if not number or not 0 <= value < 1 << 63:
                raise CheckpointError(f"The checkpoint's state has the {name} {str(value)[:100]}, which is not such a "
                                      "number.")
        best = values.get("best_loss")
        return cls(**{**values, "best_loss": float("inf") if best is None else best, "unlogged": unlogged})


def _losses(values: Any) -> Losses:
    """Losses by name, as `State.to_json` wrote them."""
    if not isinstance(values, dict) or not all(_is_loss(value) for value in values.values()):
        raise CheckpointError(f"The checkpoint's state has the unlogged losses {str(values)[:100]}, which are not such "
                              "sums.")
    return {name: Loss(**value) for name, value in values.items()}


def _is_loss(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"total", "count"} and type(value["count"]) is int \
        and 0 <= value["count"] < 1 << 63 and type(value["total"]) in (int, float) and isfinite(value["total"])


class Listener:
    """Hears of training as it goes; a display overrides what it shows. `stepped` may return True to end training."""

    def began(self, trainer: Any) -> None:
        """Before the first step."""

    def stepped(self, state: State, loss: float) -> bool | None:
        """After each step, with the loss that it minimised."""

    def logged(self, record: dict[str, Any]) -> None:
        """A line for the log."""

    def said(self, message: str) -> None:
        """A sentence for a person."""


class Listeners(Listener):
    """Several listeners, as one."""

    def __init__(self, listeners: Sequence[Listener] = ()):
        self.listeners = list(listeners)

    @classmethod
    def of(cls, listener: Listener | Sequence[Listener] | None) -> Self:
        """One, several or none."""
        if isinstance(listener, cls):
            return listener
        return cls(() if listener is None else [listener] if isinstance(listener, Listener) else listener)

    def began(self, trainer: Any) -> None:
        for listener in self.listeners:
            listener.began(trainer)

    def stepped(self, state: State, loss: float) -> bool:
        answers = [listener.stepped(state, loss) for listener in self.listeners]      # all of them hear of it
        return any(answers)

    def logged(self, record: dict[str, Any]) -> None:
        for listener in self.listeners:
            listener.logged(record)

    def said(self, message: str) -> None:
        for listener in self.listeners:
            listener.said(message)


class Loop(Generic[Batch, Part]):
    """Steps of one update over batches, each with its learning rate, until the last or until `after` says so."""

    def __init__(self, update: Update[Batch, Part], batches: Batches[Batch], rate: Callable[[int], float],
                 state: State, *, seed: int = 0, max_bad_steps: int = 1):
        self.update, self.batches, self.rate, self.state = update, batches, rate, state
        self.seed, self.max_bad_steps = seed, max_bad_steps
        self.loading = 0.0                        # seconds that batches took

    def run(self, after: Callable[[StepResult, Batch], bool | None] = lambda result, batch: None) -> None:
        """Take steps to the last, or until `after` returns True."""
        while self.state.step < self.state.total_steps:
            batch, result = self.advance()
            if after(result, batch):
                return

    def advance(self, measure: bool = False) -> tuple[Batch, StepResult]:
        """One step. One whose loss or gradient is not finite is skipped; too many in a row are an error."""
        state, begin = self.state, perf_counter()
        batch = self.batches[Step(state.step, state.total_steps)]
        self.loading += perf_counter() - begin
        result = self.update.step(batch, (self.seed, state.step), self.rate(state.step), measure)
        state.step += 1
        if result.finite:
            state.bad_in_a_row = 0
            if result.loss.count:
                state.smooth(result.loss.mean)
        else:
            state.skipped += 1
            state.bad_in_a_row += 1
            if state.bad_in_a_row >= self.max_bad_steps and not result.loss.count:
                raise CorpusError(f"{_steps(state.bad_in_a_row)} nothing to predict, the last one step {state.step}: "
                                  "all its tokens are special or unknown, so the run has stopped; the text needs words "
                                  "of the vocabulary.")
            if state.bad_in_a_row >= self.max_bad_steps:
                raise NumericalError(f"{_steps(state.bad_in_a_row)} no finite loss or gradient, the last one step "
                                     f"{state.step}, so the run has stopped.")
        return batch, result


def _steps(n: int) -> str:
    return "One step had" if n == 1 else f"{n} steps in a row had"
