"""What a finding is, the table of diseases, and the case that their checks look at.

A disease is one function in doctor_curve.py, doctor_steps.py, doctor_model.py or doctor_data.py, entered in the table
by `@disease(name, place)`. It takes the case and returns a finding or None; what it needs and the run has not raises
NotThere, and the doctor says so. Findings are told in the order of their places: a cause before what follows from it,
so that the first one is the one to treat.

A healthy run may look ill while it is young. What is read off its curve, its steps or its weights therefore waits until
there is enough of the curve, and is only possible until then; what its text or an experiment with its model shows needs
no curve (waits=False).
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import Enum
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from ...evaluation.probabilities import Floats
from .baseline_losses import Levels, measured_levels
from .checkpoint_stats import ModelView, view_of
from .reference import Comparison, compared_with_reference
from .run_record import Curve, NotThere, RunRecord


class Sure(Enum):
    """How sure a finding is."""

    CERTAIN = "certain"               # seen directly
    LIKELY = "likely"                 # what it does is there, and nothing else is known to do it
    POSSIBLE = "possible"             # too early, or too little to see


@dataclass(frozen=True)
class Finding:
    """A disease, how sure, in a sentence, with its evidence in numbers and one thing to try."""

    name: str
    sure: Sure
    says: str
    evidence: dict[str, float]
    advice: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"sure": self.sure.value, "evidence": {
            name: value if isfinite(value) else None for name, value in self.evidence.items()}}   # JSON knows no NaN


class Case:
    """A run under examination: its record, and what is worked out from it once for all checks."""

    def __init__(self, run: RunRecord):
        self.run = run
        self.measured: dict[str, float] = {}      # figures of the checks, for the evidence that a run is healthy
        self.findings: list[Finding] = []         # of the checks that were made

    @cached_property
    def levels(self) -> Levels:
        return measured_levels(self.run)

    @property
    def unigram(self) -> float:
        if self.levels.unigram is None:
            raise NotThere("the unigram entropy of its text is not known: the corpus is not there.")
        return self.levels.unigram

    @property
    def bigram(self) -> float:
        if self.levels.bigram is None:
            raise NotThere("the bigram entropy of its text is not known: the corpus is not there.")
        return self.levels.bigram

    @property
    def curve(self) -> Curve:
        if not len(self.run.curve):
            raise NotThere("its log has no loss.")
        return self.run.curve

    @property
    def loss(self) -> float:
        """Where the run stands: the last loss."""
        return float(self.curve.losses[-1])

    @cached_property
    def reference(self) -> Comparison:
        """The run beside the curve of the shipped model that is like it."""
        return compared_with_reference(self.run)

    @cached_property
    def view(self) -> ModelView:
        """What the newest checkpoint does with some of the text."""
        return view_of(self.run)

    @cached_property
    def working(self) -> npt.NDArray[np.bool_]:
        """By line of the log: is the rate at least half of the highest so far, so that a step means something?"""
        rates = self.run.column("learning_rate")
        if not len(rates) or not np.isfinite(rates).any():
            raise NotThere("its log has no learning rate.")
        return rates >= 0.5 * np.nanmax(rates)

    def update_ratio(self) -> Floats:
        """By line of the log: the largest change of a part of the model by a step, relative to its weights."""
        parts = self.run.parts("update_ratio")
        if not parts:
            raise NotThere("its log has no update ratios.")
        return _largest(list(parts.values()))


def _largest(rows: list[Floats]) -> Floats:
    table = np.array(rows)
    largest: Floats = np.where(np.isfinite(table), table, -np.inf).max(axis=0)
    return np.where(np.isfinite(largest), largest, np.nan)


Check = Callable[[Case], Finding | None]


@dataclass(frozen=True)
class Disease:
    name: str
    place: int            # in the order of telling
    check: Check
    about: str            # the first line of the check's docstring
    waits: bool           # is it only possible while the curve is too short to be judged?


DISEASES: dict[str, Disease] = {}


def disease(name: str, place: int, *, waits: bool = True) -> Callable[[Check], Check]:
    """Enter a check in the table."""

    def enter(check: Check) -> Check:
        assert name not in DISEASES, f"{name} is in the table already"
        DISEASES[name] = Disease(name, place, check, (check.__doc__ or "").strip().splitlines()[0], waits)
        return check

    return enter
