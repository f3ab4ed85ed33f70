"""What an error shows when it is none of an exercise's typical ones: its shape, its ratio, its place.

Each function of GENERAL looks at one failing output in all cases and returns a sentence or None; the first that
knows something is heard.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..core.arrays import Array, BoolArray
from .exercise import Clues, Pieces, same

# an exception in the learner's code: its kind, words of its sentence, what to look at
FAULTS: list[tuple[type[BaseException], str, str]] = [
    (ValueError, "matmul", "The two factors do not fit. Write the shape of each beside it: in a product the inner "
                           "sizes must be equal, and the result must have the shape of what it is the gradient of."),
    (ValueError, "broadcast", "Two arrays do not fit element by element. Write their shapes beside them; a sum over "
                              "an axis that was lost needs keepdims=True, a sum that was forgotten leaves one too "
                              "many."),
    (NameError, "", "A name is used that has no value; what the forward kept is in the cache, and is unpacked first."),
    (ValueError, "unpack", "The cache is taken apart into another number of values than the forward put in."),
    (UnboundLocalError, "", "A name is used before it has a value."),
]


class Failing(NamedTuple):
    """An output that is wrong, with what it was and what it should be in each case that ran."""

    output: str
    cases: list[Pieces]
    given: list[Any]
    clues: Clues

    def pairs(self) -> list[tuple[Array, Array]]:
        """(given, right) in the cases where both are arrays of floats."""
        return [(given, pieces.expected[self.output]) for given, pieces in zip(self.given, self.cases, strict=True)
                if isinstance(given, np.ndarray) and given.dtype.kind == "f"]

    def fitting(self) -> list[tuple[Array, Array]]:
        """The same, if all have the right shape; else nothing."""
        pairs = self.pairs()
        fits = len(pairs) == len(self.cases) and all(given.shape == right.shape for given, right in pairs)
        return pairs if fits else []


def _transposed(failing: Failing) -> str | None:
    pairs = failing.pairs()
    if pairs and all(given.ndim == 2 and same(given.T.copy(), right) for given, right in pairs):
        return f"{failing.output} is the transpose of the right one: exchange the factors, and transpose the other."
    return None


def _not_summed(failing: Failing) -> str | None:
    for axis in (0, 1):
        if failing.pairs() and all(given.ndim == right.ndim + 1 and same(given.sum(axis=axis), right)
                                   for given, right in failing.pairs()):
            return f"{failing.output} has one axis too many: sum over axis {axis}."
    return None


def _wrong_shape(failing: Failing) -> str | None:
    for given, pieces in zip(failing.given, failing.cases, strict=True):
        right = pieces.expected[failing.output]
        if given is None or np.shape(given) != right.shape:
            what = "nothing" if given is None else f"the shape {np.shape(given)}"
            return (f"{failing.output} has {what}; a gradient has the shape of what it is the gradient of, here "
                    f"{right.shape}.")
    return None


def _not_float(failing: Failing) -> str | None:
    kinds = {given.dtype for given in failing.given if isinstance(given, np.ndarray)} - {np.dtype(np.float64)}
    if kinds:
        return (f"{failing.output} is {kinds.pop()}: it was put into an array of another kind, or converted on the "
                "way. np.zeros(shape) and np.zeros_like(of a float array) have the right one.")
    return None


def _not_finite(failing: Failing) -> str | None:
    for given, right in failing.fitting():
        if not np.isfinite(given).all():
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(given))[0])
            return (f"{failing.output}{list(where)} is not a number, where {right[where]:.4g} is right: look for a "
                    "division by zero, a logarithm of zero, or minus infinity minus itself.")
    return None


def _zero(failing: Failing) -> str | None:
    if failing.fitting() and all(not given.any() for given, _ in failing.fitting()):
        return f"{failing.output} is zero everywhere: it is made, but nothing is put into it."
    return None


def _ratio(failing: Failing) -> str | None:
    """A factor that is the same for all elements, and if possible by the name of a size."""
    factors = []
    for given, right in failing.fitting():
        factor = float((given * right).sum() / (right * right).sum()) if right.any() else float("nan")
        if not np.isfinite(factor) or not same(given, factor * right):
            return None
        factors.append(factor)
    if not factors or np.allclose(factors, 1, rtol=1e-6):
        return None
    if np.allclose(factors, -1, rtol=1e-6):
        return f"{failing.output} has the wrong sign everywhere."
    sizes = [failing.clues.sizes(pieces) for pieces in failing.cases]
    for name in sizes[0]:
        values = np.array([size[name] for size in sizes])
        for made, told in ((values, f"{name} times too large: divide by it, or take a mean where there is a sum"),
                           (1 / values, f"too small by the factor {name}: it is divided by it once too often, or a "
                                        "mean stands where a sum belongs")):
            if np.allclose(factors, made, rtol=1e-6):
                return f"{failing.output} is {told}."
    if np.ptp(factors) <= 1e-6 * max(map(abs, factors)):
        return f"{failing.output} is {factors[0]:.4g} times the right one everywhere: a constant factor is wrong."
    told = ", ".join(f"{factor:.4g} ({pieces.case})" for factor, pieces in zip(factors, failing.cases, strict=True))
    return f"{failing.output} is off by one factor in each case, {told}: which size has these values?"


def _place(failing: Failing) -> str | None:
    """Errors that are all in one place that the exercise has a name for, or in one kind of place."""
    if not failing.fitting():
        return None
    masks = [failing.clues.places(pieces) for pieces in failing.cases]
    wrong = [~_close(given, right) for given, right in failing.fitting()]
    for name in {name for mask in masks for name in mask}:
        covers = [np.broadcast_to(mask.get(name, False), bad.shape) for mask, bad in zip(masks, wrong, strict=True)]
        if all((bad <= cover).all() for bad, cover in zip(wrong, covers, strict=True)):
            return f"{failing.output} is right but for {name}: all errors are there."
    passed = [pieces.case for pieces, bad in zip(failing.cases, wrong, strict=True) if not bad.any()]
    failed = [pieces.case for pieces, bad in zip(failing.cases, wrong, strict=True) if bad.any()]
    if passed:
        return (f"{failing.output} is right in the case {' and '.join(map(repr, passed))}, wrong in "
                f"{' and '.join(map(repr, failed))}: what is there in the second that the first has not?")
    return None


def _worst(failing: Failing) -> str | None:
    for (given, right), pieces in zip(failing.fitting(), failing.cases, strict=False):
        bad = ~_close(given, right)
        if bad.any():
            where = np.unravel_index(int(np.abs(given - right).argmax()), right.shape)
            place = [int(i) for i in where]
            return (f"{failing.output}{place} is {given[where]:.4g}, where {right[where]:.4g} is right; "
                    f"{int(bad.sum())} of {bad.size} elements are wrong in the case {pieces.case!r}.")
    return None


def _close(given: Array, right: Array) -> BoolArray:
    close: BoolArray = np.abs(given - right) <= 1e-6 * np.maximum(np.abs(right), 1e-3 * np.abs(right).max(initial=0))
    return close


GENERAL: list[Callable[[Failing], str | None]] = [_transposed, _not_summed, _wrong_shape, _not_float, _not_finite,
                                                  _zero, _ratio, _place, _worst]
