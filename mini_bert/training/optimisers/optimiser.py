"""What optimisers share: the walk over the flat buffer, learning-rate factors, weight decay, and their state.

The buffer is worked through in chunks that stay in the cache from the first line of a formula to the last, so memory
is read once instead of a dozen times; the chunks are shared out among the threads. Each number is computed by itself,
so neither chunks nor threads change the result. An optimiser is a subclass with the names of its state arrays and one
formula, `direction`; weight decay acts on the weights directly, and on matrices only: biases and norms are left alone.
A formula that needs whole matrices is `matrix_direction`, for the parameters that `whole` chooses.

Several processes divide an optimiser: each keeps the state of one shard of the buffer, steps it, and gives the new
weights to the others. A shard has whole chunks and whole matrices, so the division changes no bit either.
"""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np

from ...core.arrays import Array
from ...core.params import Parameters, ParamSpec
from ...errors import ConfigError, InputError
from ...parallel.division import shards
from ...parallel.processes import ALONE, Processes, gather
from ...workers import Workers
from .moments import FullMoments, Moments
from .walk import Piece, chunks, pieces, shares, spread

# Elements at a time. A chunk's arrays stay in the processor's cache between the lines of a formula, and each line takes
# long enough for two threads not to wait for the interpreter's lock (2^16 costs a third more). A norm is the sum over
# blocks, so its bits depend on their size.
CHUNK, NORM_BLOCK = 1 << 18, 1 << 16


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
        self.processes: Processes = ALONE
        self._common: list[Array] | None = None           # memory of all processes, through which weights go
        self.shards = [slice(0, params.flat.size)]        # of the buffer, by process
        self.moments: Moments
        self.state: dict[str, Array]
        self.store(FullMoments())
        everything = pieces(params, factors or {}, groups or {}, self.whole)
        self._norm_blocks = chunks(everything, NORM_BLOCK)
        self._chunks = chunks([piece for piece in everything if piece.shape is None], CHUNK)
        # the largest first, so that no thread is left with one at the end
        self._matrices = sorted((piece for piece in everything if piece.shape is not None),
                                key=lambda piece: -piece.size)

    def store(self, moments: Moments) -> None:
        """Keep the state arrays in this way; they begin with zeros. Before the first step."""
        self.moments, self.state = moments, {}                # whatever was there before is freed first
        self.state = {name: moments.zeros(self.params.flat[self.shard]) for name in self.states}

    @property
    def shard(self) -> slice:
        """The part of the buffer that this process steps, and keeps the state of."""
        return self.shards[self.processes.rank]

    def divide(self, processes: Processes, together: Iterable[slice] = ()) -> None:
        """Be one part of an optimiser that these processes share; before the first step. No shard ends inside a run of
        `together`."""
        if processes.size == 1:
            return
        if type(self).step is not Optimiser.step or type(self).grad_norm is not Optimiser.grad_norm:
            raise ConfigError(f"The optimiser {type(self).__name__} has a step of its own, over all parameters, so "
                              "several processes cannot share it; a direction, of some of them, can be shared.")
        work = [*self._chunks, *self._matrices]
        self.processes, self._common = processes, processes.common(self.params.flat.size, self.params.dtype)
        self.shards = shards(self.params.flat.size, [piece.start for piece in work], together, processes.size)
        self.store(self.moments)

    def gather(self) -> None:
        """After a step: the other processes' weights."""
        gather(self.processes, self.params.flat, self.shards, self._common)

    def _mine(self, some: list[Piece]) -> list[Piece]:
        """Those of the pieces that this process steps."""
        return [piece for piece in some if self.shard.start <= piece.start < self.shard.stop]

    def direction(self, g: Array, u: Array, rate: float, *states: Array) -> None:
        """Leave in `u` what is subtracted from some weights at this learning rate.

        `g` is their gradient, which may be overwritten; `states` are the parts of the state arrays, changed in place.
        """
        raise TypeError(f"{type(self).__name__} has no direction.")

    @staticmethod
    def whole(spec: ParamSpec) -> bool:
        """Is this parameter stepped as a whole, by `matrix_direction`?"""
        return False

    def matrix_direction(self, g: Array, u: Array, rate: float, *states: Array) -> None:
        """As `direction`, for one parameter that `whole` chooses: all arrays have its shape. One thread computes it."""
        raise TypeError(f"{type(self).__name__} has no matrix_direction.")

    def restore(self, state: Mapping[str, Array], steps: int) -> None:
        """Take the state of a checkpoint, here that of the own shard, and the number of steps that led to it."""
        for name, array in self.state.items():
            array[...] = state[name]
        self.t = steps

    @classmethod
    def floats(cls, parameters: int) -> int:
        """How many numbers it keeps for this number of parameters, not counting those of an optimiser that it wraps."""
        return len(cls.states) * parameters

    def evaluation_weights(self) -> AbstractContextManager[None]:
        """While the context lasts, `params` holds the weights to measure and to save: the same, unless it averages."""
        return nullcontext()

    def grad_norm(self, gradients: Parameters, workers: Workers | None = None) -> float:
        """The norm of all gradients that are not frozen, summed in float64 across blocks."""
        g = gradients.flat
        work = shares(self._mine(self._norm_blocks), workers.threads if workers else 1)
        squares = spread(workers, lambda share: [_square(g[piece.place]) for piece in share if piece.factor], work)
        mine = [square for share in squares for square in share]
        return sqrt(sum(square for theirs in self.processes.share(mine) for square in theirs))

    def step(self, gradients: Parameters, *, learning_rate: float | None = None, scale: float = 1.0,
             workers: Workers | None = None, measure: bool = False) -> Measures | None:
        """One step against `scale` times the gradients. With `measure`, what it did to each group of parameters."""
        if gradients.flat.shape != self.params.flat.shape:
            raise InputError(f"There are {gradients.flat.size} gradients for {self.params.flat.size} parameters.")
        self.t += 1
        rate = self.learning_rate if learning_rate is None else learning_rate
        # in an order that does not depend on the threads, so that the sums of `measure` do not
        work = [[matrix] for matrix in self._mine(self._matrices)]
        work += shares(self._mine(self._chunks), workers.threads if workers else 1)

        def run(share: list[Piece]) -> _Norms:
            scratch = np.empty((2, max(piece.size for piece in share)), self.params.flat.dtype)
            return [(piece, *self._update(piece, gradients.flat, rate, scale, scratch, measure)) for piece in share]

        norms = spread(workers, run, work)
        if not measure:
            return None
        found = {row[0].start: row for theirs in self.processes.share([row for rows in norms for row in rows])
                 for row in theirs}
        return _measures([found[piece.start] for piece in (*self._matrices, *self._chunks)])

    def _update(self, piece: Piece, gradient: Array, rate: float, scale: float, scratch: Array,
                measure: bool) -> tuple[float, float, float]:
        """Move one piece; the squares of its gradient, of its change and of its weights."""
        if not piece.factor:
            return 0.0, 0.0, 0.0
        here, sizes = piece.place, (0.0, 0.0, 0.0)
        w, (g, u) = self.params.flat[here], scratch[:, : piece.size]
        np.multiply(gradient[here], scale, out=g)
        grad_square = _square(g) if measure else 0.0
        kept = slice(here.start - self.shard.start, here.stop - self.shard.start)
        stored = [state[kept] for state in self.state.values()]
        states = self.moments.opened(stored)
        move, shape = (self.direction if piece.shape is None else self.matrix_direction), piece.shape or -1
        move(g.reshape(shape), u.reshape(shape), rate * piece.factor, *(state.reshape(shape) for state in states))
        self.moments.close(stored, states, self.t, piece.start)
        fade = rate * piece.factor * self.weight_decay if piece.decays else 0.0
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


_Norms = list[tuple[Piece, float, float, float]]      # squares of gradient, update and weight


def _measures(norms: _Norms) -> Measures:
    totals: dict[str, list[float]] = {}
    for piece, *squares in norms:
        sums = totals.setdefault(piece.group, [0.0, 0.0, 0.0])
        for i, square in enumerate(squares):
            sums[i] += square
    return Measures({group: sqrt(gradient) for group, (gradient, _, _) in totals.items()},
                    {group: sqrt(update / weight) if weight else 0.0 for group, (_, update, weight) in totals.items()})


def _square(x: Array) -> float:
    return float(np.dot(x, x))
