"""The doctor: reads a run, and says in plain words whether its curve is healthy and what ails it if not.

The diseases are in curve.py, steps.py, model.py and data.py, a function each; here they
are asked in turn. A run that is still going, or of which something is missing, is examined as far as it is there, and
what could not be examined is said.
"""

from dataclasses import dataclass, replace
from math import isfinite
from os import PathLike
from typing import Any

import numpy as np

from ...errors import MiniBertError
from . import curve, data, model, steps  # noqa: F401  (they fill the table)
from .baseline_losses import Levels
from .reference import Comparison
from .run_record import NotThere, RunRecord
from .symptoms import DISEASES, Case, Disease, Finding, Sure

HEALTHY, SICK, UNCLEAR = "healthy", "sick", "unclear"
TOO_SHORT = "too short to tell"
# A run for which one of these could not be made may be anything.
ESSENTIAL = ("exploding", "still at uniform", "stuck at unigram", TOO_SHORT)


@dataclass(frozen=True)
class Diagnosis:
    """What the doctor says of a run."""

    run: str
    verdict: str                          # healthy, sick or unclear
    says: str
    findings: list[Finding]               # the one to treat first first
    step: int
    finished: bool
    loss: float | None                    # the last one, held out if there are such
    levels: Levels
    reference: Comparison | None
    measured: dict[str, float]            # figures of all checks
    left_out: dict[str, str]              # checks that could not be made, and why
    notes: list[str]

    @property
    def healthy(self) -> bool:
        return self.verdict == HEALTHY

    def to_dict(self) -> dict[str, Any]:
        return {"run": self.run, "verdict": self.verdict, "says": self.says,
                "findings": [finding.to_dict() for finding in self.findings], "step": self.step,
                "finished": self.finished, "loss": self.loss, "levels": self.levels.to_dict(),
                "reference": None if self.reference is None else self.reference.to_dict(),
                "measured": {key: value if isfinite(value) else None for key, value in self.measured.items()},
                "left_out": self.left_out, "notes": self.notes}


def examine(run: str | PathLike[str], corpus: str | PathLike[str] | None = None) -> Diagnosis:
    """Examine the run in a directory. `corpus` says where its text is now, if it was moved."""
    record = RunRecord.read(run, corpus)
    if corpus is not None:
        record.require_corpus()                   # one that is named and cannot be used is refused
    return examine_record(record)


def examine_record(record: RunRecord) -> Diagnosis:
    """Examine what has been read of a run; one whose settings cannot be is refused."""
    record.require_settings()
    case = Case(record)
    findings = case.findings
    left_out: dict[str, str] = {}
    for disease in sorted(DISEASES.values(), key=lambda disease: disease.place):
        try:
            finding = _checked(disease, case)
        except NotThere as reason:
            left_out[disease.name] = str(reason)
        except MiniBertError as error:
            left_out[disease.name] = str(error)   # a damaged file, or a model that gives no numbers
        else:
            if finding is not None:
                findings.append(finding)
    try:
        reference = case.reference
    except NotThere:
        reference = None                          # the check that needs it has said why
    certain = [finding for finding in findings if finding.sure is not Sure.POSSIBLE]
    missing = [name for name in ESSENTIAL if name in left_out]
    verdict = SICK if certain else UNCLEAR if findings or missing else HEALTHY
    curve = record.curve
    return Diagnosis(str(record.directory), verdict, _says(verdict, case, findings, reference, missing), findings,
                     record.step, record.finished, float(curve.losses[-1]) if len(curve) else None, case.levels,
                     reference, case.measured, left_out, list(record.notes))


def _checked(disease: Disease, case: Case) -> Finding | None:
    with np.errstate(all="ignore"):               # of numbers in a log that no run has; what comes of them is no number
        finding = disease.check(case)
    if finding is not None and disease.waits and not curve.judged(case):
        return replace(finding, sure=Sure.POSSIBLE)
    return finding


def _says(verdict: str, case: Case, findings: list[Finding], reference: Comparison | None,
          missing: list[str]) -> str:
    """The verdict in a sentence or two."""
    if verdict == SICK:
        first = next(finding for finding in findings if finding.sure is not Sure.POSSIBLE)
        more = sum(finding is not first and finding.name != TOO_SHORT for finding in findings)
        return f"Not healthy: {first.name}" + (f", and {more} more finding{'s' if more > 1 else ''}." if more else ".")
    if verdict == UNCLEAR:
        if not findings:
            return f"It cannot be said: {', '.join(missing)} could not be examined."
        *signs, last = findings
        if not signs:
            return f"Nothing is wrong so far. {last.says}"
        return f"It is too early to say. {last.says} So far there are signs of: {', '.join(f.name for f in signs)}."
    levels, loss = case.levels, case.loss
    below = [f", below {words} ({level:.3f})" for level, words in (
        (levels.bigram, "what the token before gives"), (levels.unigram, "what frequencies give"),
        (levels.uniform, "guessing evenly")) if level is not None and loss < level]
    kind = "held-out" if case.curve.heldout else "training"
    sentence = f"Healthy: the {kind} loss is {loss:.3f}{below[0] if below else ''}"
    speed = 1e6 * curve.pace(case)
    sentence += f", and falls by {speed:.3g} a million tokens." if speed > 0 else ", and has stopped falling."
    return sentence if reference is None else f"{sentence} {reference}"
