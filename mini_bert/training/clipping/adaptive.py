"""Adaptive gradient clipping (AGC): the gradient of a unit may be a share of the unit's weights, and no more.

    g_i <- g_i min(1, limit max(|w_i|, eps) / |g_i|)        for every unit i        derivation: docs/math/clipping.md

A unit is what makes one output: a column of a matrix that is used as x @ W, a row of a table, a whole gain or bias. The
heads on top are left alone.
"""

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.params import Parameters, ParamSpec
from ...core.registry import register
from ...errors import ConfigError
from ...workers import Workers

_HEADS = ("mlm_head", "sentence_head", "task_head")           # components
_AT_A_TIME = 1 << 18                                          # numbers of a table, so that they stay in the cache


class _Part(NamedTuple):
    """Some units of a parameter: these rows of it, and the axes that a unit runs over."""

    name: str
    rows: slice
    axes: tuple[int, ...]


def unit_axes(spec: ParamSpec) -> tuple[int, ...]:
    """The axes of a parameter that one of its units runs over; none if it belongs to a head.

    Of a table (see ParamSpec.axes) those over features: a unit is what a word, a position or a head has.
    """
    if spec.component in _HEADS:
        return ()
    every = range(len(spec.shape))
    if any(spec.axes):
        return tuple(axis for axis in every if not spec.axes[axis : axis + 1] or not spec.axes[axis]) or tuple(every)
    return tuple(every)[:-1] or (0,)


@register("clipping", "adaptive")
class AdaptiveClipping:
    """`eps` is the least norm that a unit counts with, so that weights which begin at zero can move."""

    def __init__(self, params: Parameters, limit: float = 0.01, eps: float = 1e-3):
        for name, value in (("limit", limit), ("eps", eps)):
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
                raise ConfigError(f"clipping: {name} of adaptive must be above zero, not {value}.")
        self.params, self.limit, self.eps = params, limit, eps
        self._parts = [part for spec in params.specs.values() for part in _parts(spec)]
        self.together = [self._place(part) for part in self._parts]

    def _place(self, part: _Part) -> slice:
        """Where in the flat buffer it lies."""
        start, shape = self.params.slices[part.name].start, self.params.specs[part.name].shape
        width = prod(shape[1:])
        return slice(start + part.rows.start * width, start + min(part.rows.stop, shape[0]) * width)

    def __call__(self, gradients: Parameters, norm: float, count: int, workers: Workers) -> float:
        def clip(part: _Part) -> None:
            g = gradients[part.name][part.rows]
            sizes, weights = (_norms(array, part.axes) for array in (g, self.params[part.name][part.rows]))
            allowed = count * self.limit * np.maximum(weights, self.eps)      # of the gradient of the summed loss
            if (sizes > allowed).any():
                g *= allowed / np.maximum(sizes, allowed)                     # exactly 1 where nothing is to be done

        workers.map(clip, self._parts)
        return 1 / count


def _parts(spec: ParamSpec) -> Iterator[_Part]:
    """All units of a parameter; those of a large table in several runs of rows. One thread computes a part."""
    axes = unit_axes(spec)
    if not axes:
        return
    rows = spec.shape[0]
    step = rows if 0 in axes else max(1, _AT_A_TIME // int(np.prod(spec.shape[1:])))
    for start in range(0, rows, step):
        yield _Part(spec.name, slice(start, start + step), axes)


def _norms(array: Array, axes: tuple[int, ...]) -> Array:
    norms: Array = np.sqrt(np.square(array).sum(axis=axes, keepdims=True))
    return norms
