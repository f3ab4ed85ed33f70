"""The learning rate over a run: a linear warm-up, then what the schedule's word says.

    linear     straight down to the final share
    cosine     down along half a cosine
    constant   stays
    wsd        stays, then straight down over the last part (warm-up, stable, decay)

A schedule is a function of the step and the number of steps alone, so a resumed run continues on it.
"""

from math import cos, isfinite, pi

from ..core.registry import make, register
from ..errors import ConfigError


@register("schedule", "linear")
def _linear(progress: float, decay_share: float) -> float:
    return 1 - progress


@register("schedule", "cosine")
def _cosine(progress: float, decay_share: float) -> float:
    return (1 + cos(pi * progress)) / 2


@register("schedule", "constant")
def _constant(progress: float, decay_share: float) -> float:
    return 1.0


@register("schedule", "wsd")
def _wsd(progress: float, decay_share: float) -> float:
    return min(1.0, (1 - progress) / decay_share) if decay_share > 0 else 1.0


def learning_rate(step: int, total: int, *, peak: float, schedule: str = "linear", warmup: int = 0,
                  final_share: float = 0.0, decay_share: float = 0.2) -> float:
    """The rate of step `step` = 0, 1, ... of `total`. The first step's is one part of the warm-up, not zero."""
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min((step - warmup) / max(total - warmup, 1), 1.0)
    shape: float = make("schedule", schedule, progress, decay_share)
    return peak * (final_share + (1 - final_share) * shape)


def check_schedule(schedule: str) -> None:
    """Refuse a word, or an option of it, that gives no rate."""
    for step in range(3):
        rate = learning_rate(step, 2, peak=1.0, schedule=schedule)
        if not isfinite(rate) or rate < 0:
            raise ConfigError(f"schedule: {schedule} gives {rate} times the learning rate; it must be zero or more.")
