"""An exercise: a solution, test inputs, and the results of typical mistakes.

The hints are data. Each exercise has a table of wrong results (`dW = dy^T x`, `dx without its third term`), computed
from correct intermediate values, each with its likely cause. An answer that equals one of them gets that cause.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from ..core.arrays import Array
from ..core.gradcheck import TOLERANCE, relative_error
from ..errors import InputError
from .answer import Answer, AnswerError

# One case: `case`, its name; `expected`, the correct outputs by name; and under their own names each input, constant
# and correct output, the cotangent `dy`, and what an exercise computes for its table of wrong results.
Pieces = SimpleNamespace


@dataclass(frozen=True)
class Wrong:
    """A typical wrong result: the outputs that it changes, its likely cause, and how to compute it."""

    outputs: str                                          # names, separated by spaces
    cause: str
    compute: Callable[[Pieces], Any]                      # an array, or a tuple with one array per output

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.outputs.split())

    def results(self, pieces: Pieces) -> dict[str, Any] | None:
        """The wrong outputs by name; None if the mistake cannot be computed, for instance because shapes do not fit."""
        try:
            with np.errstate(all="ignore"):
                made = self.compute(pieces)
        except (ValueError, IndexError):
            return None
        return dict(zip(self.names, made if isinstance(made, tuple) else (made,), strict=True))


@dataclass(frozen=True)
class Clues:
    """What the grader knows about the mistakes in an exercise."""

    wrong: Sequence[Wrong] = ()
    sizes: Callable[[Pieces], Mapping[str, float]] = lambda pieces: {}     # factors by which a result may be wrong
    places: Callable[[Pieces], Mapping[str, Any]] = lambda pieces: {}      # masks to which errors may be confined


@dataclass(frozen=True)
class OutputGrade:
    """The grade of one output: its worst relative error and the case, or a note why it cannot be compared."""

    output: str
    error: float
    passed: bool
    case: str
    note: str = ""


@dataclass(frozen=True)
class Grade:
    """The grade of an answer."""

    exercise: str
    rows: list[OutputGrade]
    hints: list[str]
    problem: str = ""                                     # why it could not be run

    @property
    def passed(self) -> bool:
        return not self.problem and bool(self.rows) and all(row.passed for row in self.rows)


@dataclass(frozen=True, eq=False)
class Exercise(ABC):
    name: str
    title: str
    difficulty: int                                       # 1 to 5
    after: str                                            # the page of docs/ to read first
    hints: tuple[str, str, str]

    @property
    @abstractmethod
    def writes(self) -> str:
        """The function that the learner writes."""

    @property
    def solution(self) -> ModuleType:
        return import_module(f"{__package__}.solutions.{self.name}")

    @abstractmethod
    def grade(self, answer: Answer, seed: int = 0) -> Grade:
        """Grade an answer."""


def outputs_by_name(given: Any, outputs: tuple[str, ...], function: str) -> dict[str, Any]:
    """The result of a function by the names of its outputs; it may be one array, a tuple in order, or a dict."""
    if isinstance(given, dict):
        missing = [name for name in outputs if name not in given]
        if missing:
            raise AnswerError(f"{function} must return {', '.join(outputs)}; {missing[0]} is missing.")
        return {name: given[name] for name in outputs}
    values = given if isinstance(given, tuple | list) else (given,)
    if len(values) != len(outputs):
        what = f"{len(values)} values" if isinstance(given, tuple | list) else f"one {type(given).__name__}"
        raise AnswerError(f"{function} must return {', '.join(outputs)}, in this order; it returned {what}.")
    return dict(zip(outputs, values, strict=True))


def nearly_equal(a: Any, b: Array) -> bool:
    """Are both arrays of the same shape and equal within the tolerance of the gradient check?"""
    return isinstance(a, np.ndarray | np.floating) and a.shape == np.shape(b) and a.dtype == np.float64 \
        and bool(np.isfinite(a).all()) and relative_error(np.asarray(a), b) <= TOLERANCE


def require_exercise(name: str, known: Sequence[str]) -> str:
    """Return the name if it is known; otherwise raise an error."""
    if name in known:
        return name
    near = get_close_matches(name, known, n=1, cutoff=0.0)
    raise InputError(f"There is no exercise {name!r}; the nearest name is {near[0]!r}; choose one of "
                     f"{', '.join(known)}.")
