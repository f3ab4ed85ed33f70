"""Optimisers around another optimiser: `lookahead(adamw, k=6)`.

The inner optimiser takes the steps; a wrapper acts on the parameters behind each of them. Its own state arrays and
those of the inner one are saved and restored together, the inner ones' names behind "inner.".
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

import numpy as np

from ...core.arrays import Array
from ...core.params import Parameters
from ...parallel.processes import Processes
from ...workers import Workers
from .moments import Moments
from .optimiser import CHUNK, Measures, Optimiser
from .walk import spread


class Wrapper(Optimiser):
    """A subclass has the names of its own state arrays and `after_step`."""

    def __init__(self, inner: Optimiser):
        self.inner, self.params = inner, inner.params
        self.learning_rate, self.weight_decay, self.t = inner.learning_rate, inner.weight_decay, inner.t
        self._begin()

    def _begin(self) -> None:
        """State arrays of zeros for the shard that the inner optimiser steps, and those of the inner one."""
        self.processes, self.shards, self._common = self.inner.processes, self.inner.shards, self.inner._common
        self.state = {}                                       # whatever was there before is freed first
        self.state = {name: np.zeros_like(self.weights) for name in self.states}
        self.state |= {f"inner.{name}": array for name, array in self.inner.state.items()}

    @property
    def weights(self) -> Array:
        """The weights that this process steps; all of them, if it is alone."""
        return self.params.flat[self.shard]

    def store(self, moments: Moments) -> None:
        """Of the optimiser inside: a wrapper's own arrays are no moments."""
        self.inner.store(moments)
        self.state |= {f"inner.{name}": array for name, array in self.inner.state.items()}

    def divide(self, processes: Processes, together: Iterable[slice] = ()) -> None:
        self.inner.divide(processes, together)
        if processes.size > 1:
            self._begin()

    def grad_norm(self, gradients: Parameters, workers: Workers | None = None) -> float:
        return self.inner.grad_norm(gradients, workers)

    def after_step(self, workers: Workers | None) -> None:
        """Act on `self.weights`, which the inner optimiser has just moved for the t-th time; threads may help."""
        raise TypeError(f"{type(self).__name__} has no after_step.")

    def step(self, gradients: Parameters, *, learning_rate: float | None = None, scale: float = 1.0,
             workers: Workers | None = None, measure: bool = False) -> Measures | None:
        measures = self.inner.step(gradients, learning_rate=learning_rate, scale=scale, workers=workers,
                                   measure=measure)
        self.t = self.inner.t
        self.after_step(workers)
        return measures

    def restore(self, state: Mapping[str, Array], steps: int) -> None:
        super().restore(state, steps)
        self.inner.restore({name: array.copy() for name, array in self.inner.state.items()}, steps)

    def evaluation_weights(self) -> AbstractContextManager[None]:
        return self.inner.evaluation_weights()


class Averager(Wrapper):
    """A wrapper with averaged weights, its one state array, which begins as the weights of step 0.

    The averaged weights are what is evaluated and saved as a model. Weights that never move keep their bits in it.
    """

    def _begin(self) -> None:
        super()._begin()
        self.average[...] = self.weights

    @property
    def average(self) -> Array:
        return self.state[self.states[0]]

    def move_average(self, share: float, workers: Workers | None) -> None:
        """average <- average + share (weights - average)"""
        weights = self.weights

        def move(start: int) -> None:
            average = self.average[start : start + CHUNK]         # in pieces that stay in the cache
            change = np.subtract(weights[start : start + CHUNK], average)
            change *= share
            average += change

        spread(workers, move, range(0, self.average.size, CHUNK))

    @contextmanager
    def evaluation_weights(self) -> Iterator[None]:
        weights = self.params.flat.copy()
        self.weights[...] = self.average
        self.gather()
        try:
            yield
        finally:
            self.params.flat[...] = weights
