"""One entry of a gradient against a finite difference of the loss, in float64.

A step that takes a ReLU over its kink measures neither slope; where that happens the step is made smaller.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...core.arrays import Array, IntArray
from ...core.cache import Cache
from ...core.gradcheck import TOLERANCE, relative_error
from ...core.hooks import Hook, no_hook, recorder
from ...core.model import MiniBERT
from ...core.ops.cross_entropy import cross_entropy_backward, cross_entropy_forward
from ...core.params import Parameters, add_product
from ...evaluation.result import Result
from .value_gradients import value_gradients

STEP = 1e-3                   # relative to the size of what is moved; halves extrapolate the error of its square away
SMALLER, TRIES = 8, 5         # how a step over a kink is made smaller, and how often

Place = tuple[int, ...]


@dataclass(frozen=True)
class Verification(Result):
    """An entry of a gradient, as it was shown and in float64, and the measured slope."""

    also = ("passed",)

    of: str
    index: Place
    shown: float
    analytic: float
    numeric: float
    error: float                          # relative, small entries against a thousandth of the largest
    step: float
    at_kink: bool                         # no step was small enough to stay on one side of every ReLU

    @property
    def passed(self) -> bool:
        return self.error <= TOLERANCE


class DoubleLoss:
    """The mean loss at some positions of a sequence, by a copy of the model in float64, made when first needed."""

    def __init__(self, model: MiniBERT, ids: IntArray, places: IntArray, wanted: IntArray,
                 types: IntArray | None = None):
        self._types = None if types is None else types[None]
        self._model, self._ids, self._places, self._wanted = model, ids, places, wanted

    @cached_property
    def model(self) -> MiniBERT:
        double = MiniBERT(self._model.config, dtype=np.float64, seed=None)
        for name in double.params:
            double.params[name][...] = self._model.params[name]
        return double

    @cached_property
    def _kinks(self) -> dict[str, float]:
        """The values that enter an activation whose slope jumps, and where it does."""
        return {spec.inputs[0]: spec.formula.kink for spec in self.model.modules.steps()
                if spec.formula.kink is not None}

    @cached_property
    def _below(self) -> frozenset[str]:
        """The values of layers that compute all tokens: above them only the rows of targets need be computed."""
        below = self.model.modules.stack.below
        return frozenset(spec.name for spec in self.model.modules.steps()
                         if spec.group == "Embeddings" or (spec.layer is not None and spec.layer < below))

    @cached_property
    def _pass(self) -> tuple[float, dict[str, float], Array, Cache]:
        """The loss, the sizes of all values, d loss / d logits, and the cache for the way back."""
        sizes: dict[str, float] = {}
        logits, cache = self.model.forward(self._ids[None], token_types=self._types, hook=recorder(sizes, _size))
        loss, loss_cache = cross_entropy_forward(logits[0][self._places], self._wanted)
        dlogits = np.zeros_like(logits)
        dlogits[0, self._places] = cross_entropy_backward(1 / len(self._places), loss_cache)
        return loss / len(self._places), sizes, dlogits, cache

    @cached_property
    def values(self) -> dict[str, Array]:
        """The gradients of all values."""
        _, sizes, dlogits, cache = self._pass
        return value_gradients(self.model, dlogits, cache, sizes)

    def parameter(self, name: str) -> Array:
        """The gradient of one parameter."""
        _, _, dlogits, cache = self._pass
        grads = _OneParameter(self.model.params, name)
        self.model.backward(dlogits, cache, grads)
        return grads.gradient

    def loss(self, hook: Hook = no_hook, short: bool = False) -> tuple[float, list[bytes]]:
        """The loss, and on which side of their kinks all ReLUs are; `short` computes only the targets' rows."""
        sides: list[bytes] = []

        def look(name: str, value: Array) -> Array:
            value = hook(name, value)
            if name in self._kinks:
                sides.append(np.packbits(value > self._kinks[name]).tobytes())
            return value

        positions = np.zeros((1, len(self._ids)), bool)
        positions[0, self._places] = True
        logits, _ = self.model.forward(self._ids[None], token_types=self._types, hook=look,
                                       positions=positions if short else None)
        loss, _ = cross_entropy_forward(logits if short else logits[0][self._places], self._wanted)
        return loss / len(self._places), sides

    def verify(self, of: str, is_parameter: bool, place: Place, shown: float) -> Verification:
        """The entry `place` of the gradient of `of`."""
        loss, sizes, *_ = self._pass
        gradient = self.parameter(of) if is_parameter else self.values[of]
        gradient = gradient[0] if gradient.ndim == 4 else gradient
        analytic, largest = float(gradient[place]), float(np.abs(gradient).max())
        moved = self._moved_parameter(of, place) if is_parameter else self._moved_value(of, place)
        size = _size(self.model.params[of]) if is_parameter else sizes[of]
        numeric, step, at_kink = _slope(moved, STEP * size)
        resolution = 8 * float(np.finfo(np.float64).eps) * abs(loss) / step
        error = relative_error(np.array([analytic, largest]), np.array([numeric, largest]), resolution)
        return Verification(of, place, shown, analytic, numeric, error, step, at_kink)

    def _moved_value(self, of: str, place: Place) -> Callable[[float], tuple[float, list[bytes]]]:
        def moved(distance: float) -> tuple[float, list[bytes]]:
            def hook(name: str, value: Array) -> Array:
                if name == of:
                    value = value.copy()
                    (value[0] if value.ndim == 4 else value)[place] += distance
                return value

            return self.loss(hook, short=of in self._below)

        return moved

    def _moved_parameter(self, of: str, place: Place) -> Callable[[float], tuple[float, list[bytes]]]:
        parameter = self.model.params[of]

        def moved(distance: float) -> tuple[float, list[bytes]]:
            before = parameter[place]
            try:
                parameter[place] = before + distance
                return self.loss(short=True)
            finally:
                parameter[place] = before

        return moved


class _OneParameter:
    """A place for the gradient of one parameter, under its own name and those that are tied to it."""

    def __init__(self, params: Parameters, name: str):
        self.gradient: Array = np.zeros(params[name].shape, params.flat.dtype)
        self._views = {name: self.gradient}
        for tie in params.ties.values():
            if tie.target == name:
                self._views[tie.name] = self.gradient.T if tie.transposed else self.gradient

    def add(self, name: str, value: Array) -> None:
        if name in self._views:
            self._views[name] += value

    def add_rows(self, name: str, rows: IntArray, values: Array) -> None:
        if name in self._views:
            self._views[name][rows] += values

    def add_product(self, name: str, x: Array, dy: Array) -> None:
        if name in self._views:
            add_product(self._views[name], x, dy)

    def complete(self, names: Iterable[str]) -> None:
        pass


def _size(value: Array) -> float:
    seen = value[~np.isneginf(value)]         # the scores of hidden keys are minus infinity
    return max(float(np.sqrt(np.mean(seen**2))), 1e-3)


def _slope(moved: Callable[[float], tuple[float, list[bytes]]], step: float) -> tuple[float, float, bool]:
    """d loss / d distance at 0, the step that measured it, and whether every step crossed a kink."""
    for _ in range(TRIES):
        points = {distance: moved(distance) for distance in (step, -step, step / 2, -step / 2)}
        crossed = len({tuple(sides) for _, sides in points.values()}) > 1
        if not crossed:
            break
        step /= SMALLER
    else:
        step *= SMALLER                       # that of the last try
    coarse, fine = ((points[h][0] - points[-h][0]) / (2 * h) for h in (step, step / 2))
    return (4 * fine - coarse) / 3, step, crossed
