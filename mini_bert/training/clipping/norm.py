"""Clipping by the global norm: all gradients are multiplied by one factor, so their direction stays.

    g <- g min(1, limit / |g|)          |g| over all parameters that learn          derivation: docs/math/clipping.md
"""

from collections.abc import Sequence

from ...core.params import Parameters
from ...core.registry import register
from ...errors import ConfigError
from ...workers import Workers
from .clipping import USUAL_NORM


def clip_factor(norm: float, limit: float) -> float:
    """What gradients of this norm are multiplied by, so that it is at most the limit; a limit of 0 is none."""
    return min(1.0, limit / norm) if limit and norm else 1.0


@register("clipping", "norm")
class ClipByNorm:
    """With `max_grad_norm` 0 nothing is clipped."""

    together: Sequence[slice] = ()

    def __init__(self, params: Parameters, max_grad_norm: float = USUAL_NORM):
        if not 0 <= max_grad_norm < float("inf"):
            raise ConfigError(f"max_grad_norm must be zero or more, not {max_grad_norm}.")
        self.max_grad_norm = max_grad_norm

    def __call__(self, gradients: Parameters, norm: float, count: int, workers: Workers) -> float:
        return clip_factor(norm, self.max_grad_norm) / count
