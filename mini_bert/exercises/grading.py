"""Grading an answer: every output is compared with the correct one, and differences get their likely cause."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.arrays import Array
from ..core.gradcheck import TOLERANCE, relative_error
from .answer import AnswerError
from .exercise import Clues, Grade, OutputGrade, Pieces, Wrong, nearly_equal
from .general_hints import EXCEPTION_HINTS, GENERAL_HINTS, FailedOutput

Attempt = Callable[[Pieces], Mapping[str, Any]]
Outcome = Mapping[str, Any] | AnswerError
_NAN = float("nan")


def compare(exercise: str, cases: tuple[Pieces, ...], attempt: Attempt, clues: Clues, hints: Sequence[str]) -> Grade:
    """Grade an answer on all cases. `attempt` returns its outputs by name, or raises an AnswerError."""
    outcomes: list[Outcome] = []
    for pieces in cases:
        try:
            outcomes.append(attempt(pieces))
        except AnswerError as fault:
            outcomes.append(fault)
    rows = [_worst([_row(output, pieces, outcome) for pieces, outcome in zip(cases, outcomes, strict=True)])
            for output in cases[0].expected]
    faults = [outcome for outcome in outcomes if isinstance(outcome, AnswerError)]
    failing = [row.output for row in rows if not row.passed]
    given = _hints(clues, hints[0], cases, outcomes, failing) if failing else []
    return Grade(exercise, rows, given, str(faults[0]) if faults else "")


def _row(output: str, pieces: Pieces, outcome: Outcome) -> OutputGrade:
    if isinstance(outcome, AnswerError):
        return OutputGrade(output, _NAN, False, pieces.case, "did not run")
    given, right = outcome[output], pieces.expected[output]
    flaw = _flaw(given, right)
    if flaw:
        return OutputGrade(output, _NAN, False, pieces.case, flaw)
    error = relative_error(given, right)
    return OutputGrade(output, error, error <= TOLERANCE, pieces.case)


def _flaw(given: Any, right: Array) -> str:
    """Why an output cannot be compared; empty if it can."""
    if given is None:
        return "is None"
    if not isinstance(given, np.ndarray | np.floating):
        return f"is a {type(given).__name__}, not an array"
    if given.shape != right.shape:
        return f"has the shape {given.shape}, not {right.shape}"
    if given.dtype != np.float64:
        return f"is {given.dtype}, not float64 like the inputs"
    if not np.isfinite(given).all():
        return f"has {int((~np.isfinite(given)).sum())} values that are NaN or infinite"
    return ""


def _worst(rows: list[OutputGrade]) -> OutputGrade:
    """An output that cannot be compared, or else the largest error."""
    return max(rows, key=lambda row: (bool(row.note), row.error if np.isfinite(row.error) else 0.0))


def _hints(clues: Clues, first: str, cases: tuple[Pieces, ...], outcomes: list[Outcome],
           failing: list[str]) -> list[str]:
    """The causes of the wrong results that the answer equals; for other wrong outputs, a description of the error."""
    faults = [outcome for outcome in outcomes if isinstance(outcome, AnswerError)]
    if len(faults) == len(outcomes):
        return _exception_hints(faults[0], first)
    hints: list[str] = []
    explained: set[str] = set()
    for wrong in sorted(clues.wrong, key=lambda wrong: -len(wrong.names)):       # those that explain most outputs first
        if not set(wrong.names) <= explained and set(wrong.names) <= set(failing) and equals(wrong, cases, outcomes):
            hints.append(wrong.cause)
            explained |= set(wrong.names)
    ran = [(pieces, outcome) for pieces, outcome in zip(cases, outcomes, strict=True)
           if not isinstance(outcome, AnswerError)]
    for output in failing:
        if output in explained or all(_row(output, *one).passed for one in ran):
            continue
        if len(hints) >= 3:
            break
        failed = FailedOutput(output, [pieces for pieces, _ in ran], [outcome[output] for _, outcome in ran], clues)
        hint = next((found for describe in GENERAL_HINTS if (found := describe(failed))), None)
        if hint:
            hints.append(hint)
    return hints or (_exception_hints(faults[0], first) if faults else [first])


def equals(wrong: Wrong, cases: tuple[Pieces, ...], outcomes: list[Outcome]) -> bool:
    """Does the answer equal this wrong result in every case, and does that differ from the correct one in some case?"""
    differs = False
    for pieces, outcome in zip(cases, outcomes, strict=True):
        made = wrong.results(pieces)
        if isinstance(outcome, AnswerError):
            continue
        if made is None:
            return False                          # this mistake would have raised an exception
        if not all(nearly_equal(outcome[name], made[name]) for name in wrong.names):
            return False
        differs |= not all(nearly_equal(made[name], pieces.expected[name]) for name in wrong.names)
    return differs


def _exception_hints(fault: AnswerError, first: str) -> list[str]:
    if fault.kind is NotImplementedError:
        return [f"To begin: {first}"]
    return [hint for kind, words, hint in EXCEPTION_HINTS if fault.kind is kind and words in str(fault)][:1]
