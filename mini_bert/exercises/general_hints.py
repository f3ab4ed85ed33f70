"""Hints for wrong outputs that equal none of an exercise's typical mistakes: from the error's shape, ratio or place.

Each function of GENERAL_HINTS takes one wrong output in all cases and returns a sentence or None; the first sentence is
used.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..core.arrays import Array, BoolArray
from .exercise import Clues, Pieces, nearly_equal

# exceptions in the learner's code: type, words of the message, hint
EXCEPTION_HINTS: list[tuple[type[BaseException], str, str]] = [
    (ValueError, "matmul", "The shapes of the two factors do not match. Write them down: in a product the inner "
                           "sizes must be equal, and a gradient must have the shape of its variable."),
    (ValueError, "broadcast", "Two arrays cannot be combined element by element. Write down their shapes; a sum "
                              "may need keepdims=True, and a missing sum leaves one axis too many."),
    (NameError, "", "A name has no value; unpack what the forward kept from the cache first."),
    (ValueError, "unpack", "The cache is unpacked into a different number of values from what the forward stored."),
    (UnboundLocalError, "", "A name is used before it has a value."),
]


class FailedOutput(NamedTuple):
    """A wrong output: its values, and the correct ones, in each case that ran."""

    output: str
    cases: list[Pieces]
    given: list[Any]
    clues: Clues

    def pairs(self) -> list[tuple[Array, Array]]:
        """(given, right) in the cases where the given value is an array of floats."""
        return [(given, pieces.expected[self.output]) for given, pieces in zip(self.given, self.cases, strict=True)
                if isinstance(given, np.ndarray) and given.dtype.kind == "f"]

    def fitting(self) -> list[tuple[Array, Array]]:
        """`pairs` if all have the right shape; otherwise an empty list."""
        pairs = self.pairs()
        fits = len(pairs) == len(self.cases) and all(given.shape == right.shape for given, right in pairs)
        return pairs if fits else []


def _transposed(failing: FailedOutput) -> str | None:
    pairs = failing.pairs()
    if pairs and all(given.ndim == 2 and nearly_equal(given.T.copy(), right) for given, right in pairs):
        return f"{failing.output} is the transpose of the correct one: swap the factors, and transpose the other one."
    return None


def _not_summed(failing: FailedOutput) -> str | None:
    for axis in (0, 1):
        if failing.pairs() and all(given.ndim == right.ndim + 1 and nearly_equal(given.sum(axis=axis), right)
                                   for given, right in failing.pairs()):
            return f"{failing.output} has one axis too many: sum over axis {axis}."
    return None


def _wrong_shape(failing: FailedOutput) -> str | None:
    for given, pieces in zip(failing.given, failing.cases, strict=True):
        right = pieces.expected[failing.output]
        if given is None or np.shape(given) != right.shape:
            what = "is None" if given is None else f"has the shape {np.shape(given)}"
            return f"{failing.output} {what}; a gradient has the shape of its variable, here {right.shape}."
    return None


def _not_float(failing: FailedOutput) -> str | None:
    kinds = {given.dtype for given in failing.given if isinstance(given, np.ndarray)} - {np.dtype(np.float64)}
    if kinds:
        return (f"{failing.output} is {kinds.pop()}: it was stored in an array of another dtype, or converted. "
                "np.zeros(shape) and np.zeros_like(of a float64 array) have the right one.")
    return None


def _not_finite(failing: FailedOutput) -> str | None:
    for given, right in failing.fitting():
        if not np.isfinite(given).all():
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(given))[0])
            return (f"{failing.output}{list(where)} is not finite but should be {right[where]:.4g}: look for a "
                    "division by zero, a logarithm of zero, or minus infinity minus itself.")
    return None


def _zero(failing: FailedOutput) -> str | None:
    if failing.fitting() and all(not given.any() for given, _ in failing.fitting()):
        return f"{failing.output} is zero everywhere: the array is created but never filled."
    return None


def _ratio(failing: FailedOutput) -> str | None:
    """A constant factor, described by the name of a size if possible."""
    factors = []
    for given, right in failing.fitting():
        factor = float((given * right).sum() / (right * right).sum()) if right.any() else float("nan")
        if not np.isfinite(factor) or not nearly_equal(given, factor * right):
            return None
        factors.append(factor)
    if not factors or np.allclose(factors, 1, rtol=1e-6):
        return None
    if np.allclose(factors, -1, rtol=1e-6):
        return f"{failing.output} has the wrong sign everywhere."
    sizes = [failing.clues.sizes(pieces) for pieces in failing.cases]
    for name in sizes[0]:
        values = np.array([size[name] for size in sizes])
        for ratio, what in ((values, f"{name} times too large: divide by it, or use a mean instead of a sum"),
                            (1 / values, f"too small by the factor {name}: it is divided by it once too often, or a "
                                         "mean is used instead of a sum")):
            if np.allclose(factors, ratio, rtol=1e-6):
                return f"{failing.output} is {what}."
    if np.ptp(factors) <= 1e-6 * max(map(abs, factors)):
        return f"{failing.output} is {factors[0]:.4g} times the correct one everywhere: a constant factor is wrong."
    listed = ", ".join(f"{factor:.4g} ({pieces.case})" for factor, pieces in zip(factors, failing.cases, strict=True))
    return f"{failing.output} is wrong by one factor in each case, {listed}: which size has these values?"


def _place(failing: FailedOutput) -> str | None:
    """Errors that are confined to places that the exercise names, or to some of the cases."""
    if not failing.fitting():
        return None
    masks = [failing.clues.places(pieces) for pieces in failing.cases]
    wrong = [~_close(given, right) for given, right in failing.fitting()]
    for name in {name for mask in masks for name in mask}:
        covers = [np.broadcast_to(mask.get(name, False), bad.shape) for mask, bad in zip(masks, wrong, strict=True)]
        if all((bad <= cover).all() for bad, cover in zip(wrong, covers, strict=True)):
            return f"{failing.output} is right except at {name}: all errors are there."
    passed = [pieces.case for pieces, bad in zip(failing.cases, wrong, strict=True) if not bad.any()]
    failed = [pieces.case for pieces, bad in zip(failing.cases, wrong, strict=True) if bad.any()]
    if passed:
        return (f"{failing.output} is right in the case {' and '.join(map(repr, passed))}, wrong in "
                f"{' and '.join(map(repr, failed))}: what do the failing cases have that the others do not?")
    return None


def _worst(failing: FailedOutput) -> str | None:
    for (given, right), pieces in zip(failing.fitting(), failing.cases, strict=False):
        bad = ~_close(given, right)
        if bad.any():
            where = np.unravel_index(int(np.abs(given - right).argmax()), right.shape)
            place = [int(i) for i in where]
            return (f"{failing.output}{place} is {given[where]:.4g} but should be {right[where]:.4g}; "
                    f"{int(bad.sum())} of {bad.size} elements are wrong in the case {pieces.case!r}.")
    return None


def _close(given: Array, right: Array) -> BoolArray:
    close: BoolArray = np.abs(given - right) <= 1e-6 * np.maximum(np.abs(right), 1e-3 * np.abs(right).max(initial=0))
    return close


GENERAL_HINTS: list[Callable[[FailedOutput], str | None]] = [
    _transposed, _not_summed, _wrong_shape, _not_float, _not_finite, _zero, _ratio, _place, _worst]
