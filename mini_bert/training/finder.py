"""Finding a learning rate: raise it step by step from far too small to far too large, and watch the loss.

The loss falls slowly at first, then steeply, then bursts. A good peak for training lies where it falls
steepest, well below where it bursts; the warm-up of a real run allows a little more.
"""

from dataclasses import dataclass
from math import isfinite, log

import numpy as np

from ..core.model import MiniBERT
from ..errors import ConfigError, NumericalError
from .batch_gradients import BatchGradients
from .config import TrainingConfig
from .optimisers.adamw import AdamW, clip_factor
from .param_groups import rate_factors
from .trainer import Batches
from .workers import workers

_SMOOTHING = 0.9
_BURST = 1.3                  # the search ends when the smoothed loss is so many times the lowest


@dataclass(frozen=True)
class Search:
    """Rates and smoothed losses as far as the search came, the rate of the steepest fall, and where it burst."""

    rates: list[float]
    losses: list[float]
    suggestion: float
    burst: float | None


def find_learning_rate(model: MiniBERT, batches: Batches, config: TrainingConfig, *, low: float = 1e-6,
                       high: float = 1.0, steps: int = 100) -> Search:
    """Search from `low` to `high`. The model ends as it began."""
    if not 0 < low < high or steps < 10:
        raise ConfigError(f"A search needs 0 < low < high and at least 10 steps, not {low}, {high} and {steps}.")
    config = config.resolved(model.config)
    before, training = model.params.flat.copy(), model.training
    model.set_training(True)
    try:
        return _search(model, batches, config, np.geomspace(low, high, steps).tolist())
    finally:
        model.params.flat[...] = before
        model.set_training(training)


def _search(model: MiniBERT, batches: Batches, config: TrainingConfig, rates: list[float]) -> Search:
    losses: list[float] = []
    average, burst = 0.0, None
    optimiser = AdamW(model.params, beta1=config.beta1, beta2=config.beta2, epsilon=config.epsilon,
                      weight_decay=config.weight_decay,
                      factors=rate_factors(model, config.layer_decay, config.freeze))
    with workers(config.threads) as team:
        gradients = BatchGradients(model, team, config.micro_batch_size, config.gradient_checkpointing)
        for step, rate in enumerate(rates):
            try:
                loss = gradients.compute(batches[step], config.seed, step)
            except NumericalError:
                burst = rate
                break
            norm = optimiser.grad_norm(gradients.gradients, team) / max(loss.masked, 1)
            average = _SMOOTHING * average + (1 - _SMOOTHING) * loss.mean
            losses.append(average / (1 - _SMOOTHING ** (step + 1)))
            if not isfinite(norm) or losses[-1] > _BURST * min(losses):
                burst = rate
                break
            clip = clip_factor(norm, config.max_grad_norm)
            optimiser.step(gradients.gradients, learning_rate=rate, scale=clip / max(loss.masked, 1), workers=team)
    rates = rates[: len(losses)]
    return Search(rates, losses, _steepest(rates, losses), burst)


def _steepest(rates: list[float], losses: list[float]) -> float:
    """Where the loss falls fastest against the logarithm of the rate."""
    if len(losses) < 3:
        return rates[0] if rates else float("nan")
    slopes = np.gradient(losses, [log(rate) for rate in rates])
    return rates[int(np.argmin(slopes))]
