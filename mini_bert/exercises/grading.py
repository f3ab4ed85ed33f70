"""The verdict on an answer: every output against the right one, and the likely cause where they differ."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.arrays import Array
from ..core.gradcheck import TOLERANCE, relative_error
from .answer import AnswerError
from .exercise import Clues, Grade, Pieces, Row, Wrong, same
from .general_hints import FAULTS, GENERAL, Failing

Attempt = Callable[[Pieces], Mapping[str, Any]]
Outcome = Mapping[str, Any] | AnswerError
_NAN = float("nan")


def compare(exercise: str, cases: tuple[Pieces, ...], attempt: Attempt, clues: Clues, hints: Sequence[str]) -> Grade:
    """Try an answer on every case. `attempt` gives its outputs by name, or raises a AnswerError."""
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
    told = _hints(clues, hints[0], cases, outcomes, failing) if failing else []
    return Grade(exercise, rows, told, str(faults[0]) if faults else "")


def _row(output: str, pieces: Pieces, outcome: Outcome) -> Row:
    if isinstance(outcome, AnswerError):
        return Row(output, _NAN, False, pieces.case, "did not run")
    given, right = outcome[output], pieces.expected[output]
    flaw = _flaw(given, right)
    if flaw:
        return Row(output, _NAN, False, pieces.case, flaw)
    error = relative_error(given, right)
    return Row(output, error, error <= TOLERANCE, pieces.case)


def _flaw(given: Any, right: Array) -> str:
    """Why an output cannot be compared; empty if it can."""
    if given is None:
        return "is None"
    if not isinstance(given, np.ndarray | np.floating):
        return f"is a {type(given).__name__}, not an array"
    if given.shape != right.shape:
        return f"has the shape {given.shape}, not {right.shape}"
    if given.dtype != np.float64:
        return f"is {given.dtype}, not float64 as the inputs are"
    if not np.isfinite(given).all():
        return f"has {int((~np.isfinite(given)).sum())} values that are NaN or infinite"
    return ""


def _worst(rows: list[Row]) -> Row:
    """What cannot be compared first, then the largest error."""
    return max(rows, key=lambda row: (bool(row.note), row.error if np.isfinite(row.error) else 0.0))


def _hints(clues: Clues, first: str, cases: tuple[Pieces, ...], outcomes: list[Outcome],
           failing: list[str]) -> list[str]:
    """The causes of wrong results that the answer equals; for outputs that none explains, what their errors show."""
    faults = [outcome for outcome in outcomes if isinstance(outcome, AnswerError)]
    if len(faults) == len(outcomes):
        return _of_fault(faults[0], first)
    hints: list[str] = []
    explained: set[str] = set()
    for wrong in sorted(clues.wrong, key=lambda wrong: -len(wrong.names)):       # what explains most first
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
        failed = Failing(output, [pieces for pieces, _ in ran], [outcome[output] for _, outcome in ran], clues)
        told = next((said for look in GENERAL if (said := look(failed))), None)
        if told:
            hints.append(told)
    return hints or (_of_fault(faults[0], first) if faults else [first])


def equals(wrong: Wrong, cases: tuple[Pieces, ...], outcomes: list[Outcome]) -> bool:
    """Is the answer this wrong result, in every case, and does it differ from the right one in some?"""
    differs = False
    for pieces, outcome in zip(cases, outcomes, strict=True):
        made = wrong.results(pieces)
        if isinstance(outcome, AnswerError):
            continue
        if made is None:
            return False                          # this mistake would not have got so far
        if not all(same(outcome[name], made[name]) for name in wrong.names):
            return False
        differs |= not all(same(made[name], pieces.expected[name]) for name in wrong.names)
    return differs


def _of_fault(fault: AnswerError, first: str) -> list[str]:
    if fault.kind is NotImplementedError:
        return [f"To begin: {first}"]
    return [hint for kind, words, hint in FAULTS if fault.kind is kind and words in str(fault)][:1]
