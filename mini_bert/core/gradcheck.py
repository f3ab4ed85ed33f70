"""Finite differences: does the gradient that a backward pass computes equal the slope of its forward pass?

For an operation y = f(x) and a random cotangent c, the backward gives d(c . y)/dx. The same number
comes from two calls of the forward, at x + h and x - h, for every element of x. The cotangent is
random because a constant one hides errors: softmax's outputs sum to one, so with c = 1 its gradient
is zero, and many wrong backwards give zero too; the same holds for LayerNorm's xhat.

All checks run in float64. See docs/math/gradient_checking.md for the choice of h.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import zip_longest
from typing import Any

import numpy as np

from ..errors import InputError
from ..randomness import generator
from .arrays import Array

STEP = 1e-5               # h: the errors h^2/6 and eps/h are both about 2e-11
TOLERANCE = 1e-6
FLOOR = 1e-3              # elements smaller than this share of the largest are compared with that share


class Check:
    """Inputs on which an operation's gradient is checked.

    `inputs(rng)` gives the arrays that the operation is differentiated by: its first arguments, or those in `names`.
    `constants` are its other arguments. A constant `rng=7` becomes a fresh generator at each call,
    so that every evaluation makes the same random choices.
    """

    def __init__(self, name: str, inputs: Callable[[np.random.Generator], Iterable[Array]],
                 names: tuple[str, ...] = (), **constants: Any):
        self.name, self.inputs, self.names, self._constants = name, inputs, names, constants

    def arguments(self, forward: Callable[..., Any], inputs: Sequence[Array]) -> dict[str, Any]:
        """All arguments of a call of `forward`, by name."""
        names = self.names or list(signature(forward).parameters)[: len(inputs)]
        return {**dict(zip(names, inputs, strict=True)), **self.constants()}

    def constants(self) -> dict[str, Any]:
        constants = dict(self._constants)
        if constants.get("rng") is not None:
            constants["rng"] = np.random.default_rng(constants["rng"])
        return constants


@dataclass(frozen=True)
class CheckResult:
    """The worst relative error of one gradient, and what it is the gradient of."""

    subject: str          # the operation or the model
    case: str
    gradient: str         # which argument or parameter
    error: float

    @property
    def passed(self) -> bool:
        return self.error <= TOLERANCE        # a NaN does not pass


def relative_error(analytic: Array, numeric: Array, resolution: float = 0.0) -> float:
    """The largest |a - n| / max(|a|, |n|), small elements measured against FLOOR of the largest.

    A difference below `resolution`, which is what rounding leaves of the numeric one, is no error.
    """
    size = np.maximum(np.abs(analytic), np.abs(numeric))
    if not size.any():
        return 0.0
    worst = np.abs(analytic - numeric) / np.maximum(size, max(FLOOR * size.max(), resolution / TOLERANCE))
    return float(worst.max()) if np.isfinite(worst).all() else float("nan")


def numerical_gradient(loss: Callable[[], float], x: Array, step: float = STEP) -> Array:
    """d loss / dx by central differences. `loss()` reads x, whose elements are moved and put back."""
    gradient = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        before = x[index]
        try:
            x[index] = before + step
            above = loss()
            x[index] = before - step
            below = loss()
        finally:
            x[index] = before
        gradient[index] = (above - below) / (2 * step)
    return gradient


def gradient_check(loss: Callable[[], float], x: Array, dx: Array, *, step: float = STEP,
                   name: str = "x") -> CheckResult:
    """Compare `dx`, a claimed gradient, with central differences of `loss()` over every element of `x`.

    `x` must be float64 and be the array that `loss` reads, for instance a parameter of a model:

        gradient_check(lambda: float((x ** 2).sum()), x, 2 * x).passed
    """
    if not isinstance(x, np.ndarray) or not x.flags.writeable:
        raise InputError(f"gradient_check moves the elements of {name}, so it must be an array that can be written.")
    if x.dtype != np.float64:
        raise InputError(f"gradient_check needs float64, and {name} is {x.dtype}: differences of "
                         "float32 losses are mostly rounding.")
    dx = np.asarray(dx)
    if x.shape != dx.shape:
        raise InputError(f"{name} has shape {x.shape} but its gradient has shape {dx.shape}.")
    resolution = 4 * np.finfo(np.float64).eps * abs(loss()) / step
    return CheckResult("function", "", name, relative_error(dx, numerical_gradient(loss, x, step), resolution))


def check_operation(name: str, forward: Callable[..., Any], backward: Callable[..., Any], checks: Iterable[Check],
                    seed: int = 0) -> list[CheckResult]:
    """Every gradient that the operation returns, on every one of its checks."""
    results = []
    for check in checks:
        rng = generator(seed, "gradcheck", name, check.name)
        inputs: list[Array] = [np.asarray(x, np.float64) for x in check.inputs(rng)]
        arguments = check.arguments(forward, inputs)
        y, cache = forward(**arguments)
        cotangent = rng.standard_normal(np.shape(y))

        def loss(arguments: dict[str, Any] = arguments, check: Check = check, cotangent: Array = cotangent) -> float:
            return float((forward(**arguments | check.constants())[0] * cotangent).sum())

        given = backward(cotangent if cotangent.shape else float(cotangent), cache)
        gradients = given if isinstance(given, tuple) else (given,)
        for argument, x, dx in zip_longest(list(arguments)[: len(inputs)], inputs, gradients[: len(inputs)]):
            missing = dx is None or np.shape(dx) != x.shape
            error = float("nan") if missing else relative_error(dx, numerical_gradient(loss, x))
            results.append(CheckResult(name, check.name, argument, error))
    return results
