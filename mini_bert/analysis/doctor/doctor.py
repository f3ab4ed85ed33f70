"""The doctor reads a run, and says in plain words whether it is healthy and what is wrong if not.

Each disease is one function in curve.py, heldout.py, steps.py, model.py or data.py; this file runs them in order. A run
that is unfinished or incomplete is examined as far as possible, and the diagnosis lists the checks that were not.
"""

from dataclasses import dataclass, replace
from math import isfinite
from os import PathLike
from typing import Any

import numpy as np

from ...errors import MiniBertError
from . import curve, data, heldout, model, steps  # noqa: F401  (they register the diseases)
from .baseline_losses import BaselineLosses
from .reference import ReferenceComparison
from .run_record import RunRecord, Unavailable
from .symptoms import DISEASES, Case, Certainty, Disease, Finding

HEALTHY, SICK, UNCLEAR = "healthy", "sick", "unclear"
TOO_SHORT = "too short to tell"
# A run is healthy only if these checks were possible.
ESSENTIAL = ("exploding", "still at uniform", "stuck at unigram", TOO_SHORT)


@dataclass(frozen=True)
class Diagnosis:
    """The doctor's verdict on a run, with its evidence."""

    run: str
    verdict: str                          # healthy, sick or unclear
    says: str
    findings: list[Finding]               # the first is the one to treat first
    step: int
    finished: bool
    loss: float | None                    # the last one; held-out if the run has held-out losses
    baselines: BaselineLosses
    reference: ReferenceComparison | None
    measured: dict[str, float]            # measurements of all checks
    left_out: dict[str, str]              # checks that were not possible, and why
    notes: list[str]

    @property
    def healthy(self) -> bool:
        return self.verdict == HEALTHY

    def to_dict(self) -> dict[str, Any]:
        return {"run": self.run, "verdict": self.verdict, "says": self.says,
                "findings": [finding.to_dict() for finding in self.findings], "step": self.step,
                "finished": self.finished, "loss": self.loss, "levels": self.baselines.to_dict(),
                "reference": None if self.reference is None else self.reference.to_dict(),
                "measured": {key: value if isfinite(value) else None for key, value in self.measured.items()},
                "left_out": self.left_out, "notes": self.notes}


def examine(run: str | PathLike[str], corpus: str | PathLike[str] | None = None) -> Diagnosis:
    """Examine the run in a directory. `corpus` is its prepared corpus, if that has been moved."""
    record = RunRecord.read(run, corpus)
    if corpus is not None:
        record.require_corpus()                   # a corpus that the caller names must be usable
    return examine_record(record)


def examine_record(record: RunRecord) -> Diagnosis:
    """Examine a run that has been read. A run with an invalid config is an error."""
    record.require_settings()
    case = Case(record)
    findings = case.findings
    left_out: dict[str, str] = {}
    for disease in sorted(DISEASES.values(), key=lambda disease: disease.order):
        try:
            finding = _checked(disease, case, left_out)
        except Unavailable as reason:
            left_out[disease.name] = str(reason)
        except MiniBertError as error:
            left_out[disease.name] = str(error)   # a damaged file, or a model whose outputs are not finite
        else:
            if finding is not None:
                findings.append(finding)
    try:
        reference = case.reference
    except Unavailable:
        reference = None                          # `left_out` has the reason
    certain = [finding for finding in findings if finding.sure is not Certainty.POSSIBLE]
    missing = [name for name in ESSENTIAL if name in left_out]
    verdict = SICK if certain else UNCLEAR if findings or missing else HEALTHY
    curve = record.curve
    return Diagnosis(str(record.directory), verdict, _says(verdict, case, findings, reference, missing), findings,
                     record.step, record.finished, float(curve.losses[-1]) if len(curve) else None, case.baselines,
                     reference, case.measured, left_out, list(record.notes))


def _checked(disease: Disease, case: Case, left_out: dict[str, str]) -> Finding | None:
    with np.errstate(all="ignore"):               # absurd numbers in a damaged log become NaN
        finding = disease.check(case)
    unchecked = [cause for cause in disease.symptom_of if cause in left_out]
    if finding is not None and unchecked:
        says = f"{finding.says} Its most common cause could not be examined: {', '.join(unchecked)}."
        return replace(finding, sure=Certainty.POSSIBLE, says=says)
    if finding is not None and disease.needs_curve and not curve.long_enough(case):
        return replace(finding, sure=Certainty.POSSIBLE)
    return finding


def _says(verdict: str, case: Case, findings: list[Finding], reference: ReferenceComparison | None,
          missing: list[str]) -> str:
    """The verdict in a sentence or two."""
    if verdict == SICK:
        first = next(finding for finding in findings if finding.sure is not Certainty.POSSIBLE)
        more = sum(finding is not first and finding.name != TOO_SHORT for finding in findings)
        return f"Not healthy: {first.name}" + (f", and {more} more finding{'s' if more > 1 else ''}." if more else ".")
    if verdict == UNCLEAR:
        if not findings:
            return f"No verdict is possible: {', '.join(missing)} could not be examined."
        *signs, last = findings
        if last.name != TOO_SHORT:                # what causes them could not be examined
            return f"There are signs of: {', '.join(f.name for f in findings)}. {findings[0].says}"
        if not signs:
            return f"Nothing is wrong so far. {last.says}"
        early = "The run was too short to tell." if case.run.finished else "It is too early to tell."
        return f"{early} {last.says} So far there are signs of: {', '.join(f.name for f in signs)}."
    loss = case.loss
    below = [f", below the {name} loss ({value:.3f})" for name, value in reversed(case.baselines.levels().items())
             if loss < value]
    kind = "held-out" if case.curve.heldout else "training"
    sentence = f"Healthy: the {kind} loss is {loss:.3f}{below[0] if below else ''}"
    speed = 1e6 * curve.fall_per_token(case)
    sentence += f", and falls by {speed:.3g} per million tokens." if speed > 0 else ", and has stopped falling."
    return sentence if reference is None else f"{sentence} {reference}"
