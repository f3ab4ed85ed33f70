"""Exercises graded by comparison, such as a backward with finite differences of its forward."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from inspect import signature
from typing import Any

import numpy as np

from ..core.arrays import Array
from ..core.gradcheck import Check, numerical_gradient
from ..randomness import generator
from .answer import Answer, AnswerError, KeptCache
from .exercise import Clues, Exercise, Grade, Pieces, outputs_by_name
from .grading import compare

STEP = 1e-4


def slopes(loss: Callable[[], float], x: Array) -> Array:
    """d loss / dx by central differences with two step sizes, extrapolated so that the h^2 error cancels."""
    coarse, fine = numerical_gradient(loss, x, 2 * STEP), numerical_gradient(loss, x, STEP)
    made: Array = (4 * fine - coarse) / 3
    return made


@dataclass(frozen=True, eq=False)
class ComparedExercise(Exercise):
    """An exercise whose output arrays are compared with correct ones."""

    clues: Clues = field(default_factory=Clues)

    @abstractmethod
    def cases(self, seed: int) -> tuple[Pieces, ...]:
        """The cases with all their values."""

    @abstractmethod
    def attempt(self, answer: Answer, pieces: Pieces) -> dict[str, Any]:
        """Run an answer on one case; its outputs by name."""

    def grade(self, answer: Answer, seed: int = 0) -> Grade:
        return compare(self.name, self.cases(seed), lambda pieces: self.attempt(answer, pieces), self.clues, self.hints)


@dataclass(frozen=True, eq=False)
class BackwardExercise(ComparedExercise):
    """NAME_backward, compared with central differences of NAME_forward under a random cotangent."""

    checks: Sequence[Check] = ()
    pieces: Callable[[Pieces], Mapping[str, Any]] = field(default=lambda pieces: {})

    @property
    def forward(self) -> str:
        return f"{self.name}_forward"

    @property
    def writes(self) -> str:
        return f"{self.name}_backward"

    @lru_cache(maxsize=64)                                # noqa: B019  exercises are never freed
    def cases(self, seed: int) -> tuple[Pieces, ...]:
        return tuple(self._case(check, seed) for check in self.checks)

    def _case(self, check: Check, seed: int) -> Pieces:
        rng = generator(seed, "exercise", self.name, check.name)
        forward = getattr(self.solution, self.forward)
        names = list(signature(forward).parameters)
        inputs = [np.asarray(x, np.float64) for x in check.inputs(rng)]
        y, _ = forward(*inputs, **check.constants())
        cotangent = rng.standard_normal(np.shape(y))
        dy = cotangent if cotangent.shape else float(cotangent)

        def loss() -> float:
            return float(np.sum(forward(*inputs, **check.constants())[0] * dy))

        expected = {f"d{name}": slopes(loss, x) for name, x in zip(names, inputs, strict=False)}
        made = Pieces(case=check.name, check=check, inputs=inputs, y=y, dy=dy, expected=expected,
                      **dict(zip(names, inputs, strict=False)), **check.constants(), **expected)
        vars(made).update(self.pieces(made))
        return made

    def attempt(self, answer: Answer, pieces: Pieces) -> dict[str, Any]:
        given = answer.call(self.forward, pieces.inputs, pieces.check.constants(), keep=True).result
        if not isinstance(given, tuple) or len(given) != 2:
            raise AnswerError(f"{self.forward} must return its result and a cache, as in the stub.")
        y, _ = given
        if not _is_numeric(y) or np.shape(y) != np.shape(pieces.y) \
                or not np.allclose(np.asarray(y, float), pieces.y, rtol=1e-9, atol=1e-12):
            raise AnswerError(f"{self.forward} no longer computes what it does in the stub; restore it, "
                              "since the backward is graded against it.")
        made, after = answer.call(self.writes, [pieces.dy, KeptCache()])
        named = outputs_by_name(made, tuple(pieces.expected), self.writes)
        require_unchanged(after, [*pieces.inputs, pieces.dy], f"{self.writes} changes its arguments in place; work on "
                          "copies.")
        return named


def require_unchanged(after: Sequence[Any], before: Sequence[Any], refusal: str) -> None:
    """Refuse an answer that has changed the first arrays that it was given."""
    arrays = [value for value in before if isinstance(value, np.ndarray)]
    if len(after) < len(arrays) or not all(np.array_equal(a, b) for a, b in zip(after, arrays, strict=False)):
        raise AnswerError(refusal)


def _is_numeric(y: Any) -> bool:
    return isinstance(y, int | float) or (isinstance(y, np.ndarray | np.generic) and y.dtype.kind in "fiub")
