"""What optimisers share: the walk over the flat buffer, learning-rate factors, weight decay, and their state.

The buffer is worked through in chunks that stay in the cache from the first line of a formula to the last, so memory
is read once instead of a dozen times; the chunks are shared out among the threads. Each number is computed by itself,
so neither chunks nor threads change the result. An optimiser is a subclass with the names of its state arrays and one
formula, `direction`; weight decay acts on the weights directly, and on matrices only: biases and norms are left alone.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from typing import ClassVar

import numpy as np

from ...core.arrays import Array
from ...core.params import Parameters
from ...errors import ConfigError, InputError
from ..workers import Item, Result, Workers

# Elements at a time. A chunk's arrays stay in the processor's cache between the lines of a formula, and each line takes
# long enough for two threads not to wait for the interpreter's lock (2^16 costs a third more). A norm is the sum over
# blocks, so its bits depend on their size.
CHUNK, NORM_BLOCK = 1 << 18, 1 << 16


@dataclass(frozen=True)
class _Range:
    """A run of the buffer whose parameters are treated alike."""

    start: int
    stop: int
    group: str                # whose norms it counts for
    factor: float             # of the learning rate; 0 for frozen
    decays: bool


@dataclass(frozen=True)
class Measures:
    """Norms by group of parameters: of the gradient, and of the change of a step relative to the weights."""

    grad_norm: dict[str, float]
    update_ratio: dict[str, float]


class Optimiser:
    """The step that moves `params`, and the state it needs.

    `factors` gives parameters a factor of the learning rate, 0 to freeze them. `groups` says to which group a parameter
    belongs, for `measure`.
    """

    title: ClassVar[str] = ""                     # for a person
    states: ClassVar[tuple[str, ...]] = ()        # names of arrays of the parameters' size, zeros at the start

    def __init__(self, params: Parameters, learning_rate: float = 1e-3, *, weight_decay: float = 0.01,
                 factors: Mapping[str, float] | None = None, groups: Mapping[str, str] | None = None):
        require_shares(learning_rate=(learning_rate, np.inf), weight_decay=(weight_decay, np.inf))
        self.params, self.learning_rate, self.weight_decay = params, learning_rate, weight_decay
        self.t = 0            # steps taken
        self.state: dict[str, Array] = {name: np.zeros_like(params.flat) for name in self.states}
        ranges = list(_ranges(params, factors or {}, groups or {}))
        self._chunks, self._norm_blocks = _chunks(ranges, CHUNK), _chunks(ranges, NORM_BLOCK)

    def direction(self, g: Array, u: Array, rate: float, *states: Array) -> None:
        """Leave in `u` what is subtracted from some weights at this learning rate.

        `g` is their gradient, which may be overwritten; `states` are the parts of the state arrays, changed in place.
        """
        raise TypeError(f"{type(self).__name__} has no direction.")

    def restore(self, state: Mapping[str, Array], steps: int) -> None:
        """Take the state of a checkpoint, and the number of steps that led to it."""
        for name, array in self.state.items():
            array[...] = state[name]
        self.t = steps

    @classmethod
    def floats(cls, parameters: int) -> int:
        """How many numbers it keeps for this number of parameters, for the forecast of memory."""
        return len(cls.states) * parameters

    def evaluation_weights(self) -> AbstractContextManager[None]:
        """While the context lasts, `params` holds the weights to measure and to save: the same, unless it averages."""
        return nullcontext()

    def grad_norm(self, gradients: Parameters, workers: Workers | None = None) -> float:
        """The norm of all gradients that are not frozen, summed in float64 across blocks."""
        g = gradients.flat
        shares = _shares(self._norm_blocks, workers.threads if workers else 1)
        squares = _map(workers, lambda share: [_square(g[c.start : c.stop]) for c in share if c.factor], shares)
        return sqrt(sum(square for share in squares for square in share))

    def step(self, gradients: Parameters, *, learning_rate: float | None = None, scale: float = 1.0,
             workers: Workers | None = None, measure: bool = False) -> Measures | None:
        """One step against `scale` times the gradients. With `measure`, what it did to each group of parameters."""
        if gradients.flat.shape != self.params.flat.shape:
            raise InputError(f"There are {gradients.flat.size} gradients for {self.params.flat.size} parameters.")
        self.t += 1
        rate = self.learning_rate if learning_rate is None else learning_rate
        shares = _shares(self._chunks, workers.threads if workers else 1)

        def run(share: list[_Range]) -> _Norms:
            scratch = np.empty((2, max((c.stop - c.start for c in share), default=0)), self.params.flat.dtype)
            return [(c.group, *self._update(c, gradients.flat, rate, scale, scratch, measure)) for c in share]

        norms = _map(workers, run, shares)
        return _measures([row for rows in norms for row in rows]) if measure else None

    def _update(self, c: _Range, gradient: Array, rate: float, scale: float, scratch: Array,
                measure: bool) -> tuple[float, float, float]:
        """Move one chunk; the squares of its gradient, of its change and of its weights."""
        if not c.factor:
            return 0.0, 0.0, 0.0
        here, sizes = slice(c.start, c.stop), (0.0, 0.0, 0.0)
        w, (g, u) = self.params.flat[here], scratch[:, : c.stop - c.start]
        np.multiply(gradient[here], scale, out=g)
        grad_square = _square(g) if measure else 0.0
        self.direction(g, u, rate * c.factor, *(state[here] for state in self.state.values()))
        fade = rate * c.factor * self.weight_decay if c.decays else 0.0
        if measure:
            sizes = (grad_square, _square(u + fade * w), _square(w))
        if fade:
            w *= 1 - fade
        w -= u
        return sizes


def require_shares(**values: tuple[float, float]) -> None:
    """Refuse settings outside [0, limit)."""
    for name, (value, limit) in values.items():
        if not 0 <= value < limit:
            raise ConfigError(f"{name} must be {'in [0, 1)' if limit == 1 else 'zero or more'}, not {value}.")


def clip_factor(norm: float, limit: float) -> float:
    """What gradients of this norm are multiplied by, so that it is at most the limit; a limit of 0 is none."""
    return min(1.0, limit / norm) if limit and norm else 1.0


_Norms = list[tuple[str, float, float, float]]        # group; squares of gradient, update and weight


def _measures(norms: _Norms) -> Measures:
    totals: dict[str, list[float]] = {}
    for group, *squares in norms:
        sums = totals.setdefault(group, [0.0, 0.0, 0.0])
        for i, square in enumerate(squares):
            sums[i] += square
    return Measures({group: sqrt(gradient) for group, (gradient, _, _) in totals.items()},
                    {group: sqrt(update / weight) if weight else 0.0 for group, (_, update, weight) in totals.items()})


def _square(x: Array) -> float:
    return float(np.dot(x, x))


def _map(workers: Workers | None, function: Callable[[Item], Result], items: list[Item]) -> list[Result]:
    return workers.map(function, items) if workers is not None else [function(item) for item in items]


def _ranges(params: Parameters, factors: Mapping[str, float], groups: Mapping[str, str]) -> Iterator[_Range]:
    """Neighbours that are treated alike, as one."""
    for name in factors:
        params[name]          # an unknown name is answered with the nearest
    current: _Range | None = None
    for name, place in params.slices.items():
        made = _Range(place.start, place.stop, groups.get(name, "all"), factors.get(name, 1.0),
                      decays=params[name].ndim > 1)
        if current is not None and (current.group, current.factor, current.decays) \
                == (made.group, made.factor, made.decays):
            current = _Range(current.start, made.stop, made.group, made.factor, made.decays)
            continue
        if current is not None:
            yield current
        current = made
    if current is not None:
        yield current


def _chunks(ranges: list[_Range], size: int) -> list[_Range]:
    return [_Range(start, min(start + size, r.stop), r.group, r.factor, r.decays)
            for r in ranges for start in range(r.start, r.stop, size)]


def _shares(chunks: list[_Range], n: int) -> list[list[_Range]]:
    """The chunks in n runs of about equal length in numbers."""
    ends = np.cumsum([c.stop - c.start for c in chunks])
    cuts = [0, *np.searchsorted(ends, ends[-1] * np.arange(1, n) / n).tolist(), len(chunks)]
    return [chunks[a:b] for a, b in pairwise(cuts) if a < b]
