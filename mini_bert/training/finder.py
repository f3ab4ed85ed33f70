"""Finding a learning rate: raise it step by step from far too small to far too large, and watch the loss.

The loss falls slowly at first, then steeply, then bursts. A good peak for training lies where it falls
steepest, well below where it bursts; the warm-up of a real run allows a little more.
"""

from dataclasses import dataclass
from math import inf, isfinite, log
from typing import Any

import numpy as np

from ..core.model import MiniBERT
from ..errors import ConfigError
from ..objectives.objective import Batches, CorpusObjective
from .config import TrainingConfig, make_clipping, make_objective, make_optimiser
from .loop import Loop, State
from .update import StepResult, Update
from .workers import workers

MOST_STEPS = 100_000          # of a search
_SMOOTHING = 0.9
_BURST = 1.3                  # the search ends when the smoothed loss is this many times the lowest


@dataclass(frozen=True)
class Search:
    """Rates and smoothed losses as far as the search came, the rate of the steepest fall, and where it burst."""

    rates: list[float]
    losses: list[float]
    suggestion: float
    burst: float | None


def find_learning_rate(model: MiniBERT, batches: Batches[Any], config: TrainingConfig, *, low: float = 1e-6,
                       high: float = 1.0, steps: int = 100,
                       objective: CorpusObjective[Any, Any] | None = None) -> Search:
    """Search from `low` to `high`, by the loss that the objective minimises. The model ends as it began.

    `objective` is the one that made the batches; the config's own if it is not given.
    """
    if not 0 < low < high < inf or not 10 <= steps <= MOST_STEPS:
        raise ConfigError(f"A search needs 0 < low < high and 10 to {MOST_STEPS} steps, not {low}, {high} and "
                          f"{str(steps)[:40]}.")
    config, before = config.resolved(model.config), model.params.flat.copy()
    try:
        return _search(make_objective(config, model) if objective is None else objective, batches, config,
                       np.geomspace(low, high, steps).tolist())
    finally:
        model.params.flat[...] = before


def _search(objective: CorpusObjective[Any, Any], batches: Batches[Any], config: TrainingConfig,
            rates: list[float]) -> Search:
    losses: list[float] = []
    average, burst = 0.0, None

    def after(result: StepResult, batch: Any) -> bool:
        nonlocal average, burst
        step = state.step - 1
        if isfinite(result.total):
            average = _SMOOTHING * average + (1 - _SMOOTHING) * result.total
            losses.append(average / (1 - _SMOOTHING ** (step + 1)))
        if result.finite:
            objective.feedback(state.step, result.losses, {})
        if not result.finite or losses[-1] > _BURST * min(losses):
            burst = rates[step]
        return burst is not None

    state = State(total_steps=len(rates))
    with workers(config.threads) as team:
        update = Update(objective, make_optimiser(config, objective.params), team,
                        clipping=make_clipping(config, objective.params))
        Loop(update, batches, rates.__getitem__, state, seed=config.seed, max_bad_steps=len(rates) + 1).run(after)
    rates = rates[: len(losses)]
    return Search(rates, losses, _steepest(rates, losses), burst)


def _steepest(rates: list[float], losses: list[float]) -> float:
    """Where the loss falls fastest against the logarithm of the rate."""
    if len(losses) < 3:
        return rates[0] if rates else float("nan")
    slopes = np.gradient(losses, [log(rate) for rate in rates])
    return rates[int(np.argmin(slopes))]
