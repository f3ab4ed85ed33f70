"""What an exercise is: a solution, inputs to try an answer on, and the results that typical mistakes give.

The hints are data. Each exercise has a table of wrong results, computed from the right pieces (`dW = dy^T x`,
`dx without its third term`), each with its likely cause; an answer that equals one of them gets that cause.
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

# Of one case: `case`, its name; `expected`, the right outputs by name; and under its own name each input, each
# constant, each right output, the cotangent `dy`, and whatever else an exercise works out for its table.
Pieces = SimpleNamespace


@dataclass(frozen=True)
class Wrong:
    """A typical wrong result: the outputs that it changes, how it comes about, and its likely cause."""

    outputs: str                                          # names, separated by spaces
    cause: str
    compute: Callable[[Pieces], Any]                      # an array, or a tuple of as many as there are outputs

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.outputs.split())

    def results(self, pieces: Pieces) -> dict[str, Any] | None:
        """By output; None where the mistake could not even be computed, a transposed factor for instance."""
        try:
            with np.errstate(all="ignore"):
                made = self.compute(pieces)
        except (ValueError, IndexError):
            return None
        return dict(zip(self.names, made if isinstance(made, tuple) else (made,), strict=True))


@dataclass(frozen=True)
class Clues:
    """What the grader knows of an exercise's mistakes."""

    wrong: Sequence[Wrong] = ()
    sizes: Callable[[Pieces], Mapping[str, float]] = lambda pieces: {}     # factors that a result can be off by
    places: Callable[[Pieces], Mapping[str, Any]] = lambda pieces: {}      # where errors can be, as masks by name


@dataclass(frozen=True)
class Row:
    """The verdict on one output: its worst relative error, and in which case; or what is wrong with it at all."""

    output: str
    error: float
    passed: bool
    case: str
    note: str = ""


@dataclass(frozen=True)
class Grade:
    """What the grader says of an answer."""

    exercise: str
    rows: list[Row]
    hints: list[str]
    problem: str = ""                                     # why it could not be run at all

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
        """The verdict on an answer."""


def named(given: Any, outputs: tuple[str, ...], function: str) -> dict[str, Any]:
    """What a function returned, by the names of the outputs: one array, a tuple in their order, or a dict."""
    if isinstance(given, dict):
        missing = [name for name in outputs if name not in given]
        if missing:
            raise AnswerError(f"{function} must return {', '.join(outputs)}; {missing[0]} is missing.")
        return {name: given[name] for name in outputs}
    values = given if isinstance(given, tuple | list) else (given,)
    if len(values) != len(outputs):
        what = f"{len(values)} things" if isinstance(given, tuple | list) else f"one {type(given).__name__}"
        raise AnswerError(f"{function} must return {', '.join(outputs)}, in this order; it returned {what}.")
    return dict(zip(outputs, values, strict=True))


def same(a: Any, b: Array) -> bool:
    """Are both arrays of one shape and equal, but for rounding and the error of differences?"""
    return isinstance(a, np.ndarray | np.floating) and a.shape == np.shape(b) and a.dtype == np.float64 \
        and bool(np.isfinite(a).all()) and relative_error(np.asarray(a), b) <= TOLERANCE


def require(name: str, known: Sequence[str]) -> str:
    """The name, if there is such an exercise."""
    if name in known:
        return name
    near = get_close_matches(name, known, n=1, cutoff=0.0)
    raise InputError(f"There is no exercise {name!r}; the nearest name is {near[0]!r}, and all are "
                     f"{', '.join(known)}.")
