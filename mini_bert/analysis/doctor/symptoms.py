"""Findings, the table of diseases, and the case that is examined.

A disease is one function in curve.py, heldout.py, steps.py, model.py or data.py, registered by `@disease(name, order)`.
It takes the case and returns a finding or None. If the run lacks something that the check needs, it raises Unavailable,
which the doctor reports. Findings are listed by `order`: a cause before its consequences, so that the first finding is
the one to treat.

A healthy run may look ill at first. Until the curve is long enough, findings from the curve, the updates or the weights
are therefore only possible. Findings from the corpus or from a test of the model do not need a curve
(needs_curve=False). A symptom is only possible, too, if a disease that causes it could not be examined (symptom_of).
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np

from ...core.arrays import BoolArray
from ...evaluation.probabilities import Floats
from ...evaluation.result import Result
from .baseline_losses import BaselineLosses, baseline_losses
from .checkpoint_stats import CheckpointStats, checkpoint_stats
from .reference import ReferenceComparison, compare_with_reference
from .run_record import LossCurve, RunRecord, Unavailable


class Certainty(Enum):
    """How certain a finding is."""

    CERTAIN = "certain"               # observed directly
    LIKELY = "likely"                 # its effects are observed, and no other cause of them is known
    POSSIBLE = "possible"             # too early, or too little evidence


@dataclass(frozen=True)
class Finding(Result):
    """A disease of a run: how certain it is, a sentence about it, the evidence in numbers, and advice."""

    name: str
    sure: Certainty
    says: str
    evidence: dict[str, float]
    advice: str


class Case:
    """A run under examination: its record, and what several checks compute from it."""

    def __init__(self, run: RunRecord):
        self.run = run
        self.measured: dict[str, float] = {}      # measurements of the checks, also of healthy runs
        self.findings: list[Finding] = []         # of the checks so far

    @cached_property
    def baselines(self) -> BaselineLosses:
        return baseline_losses(self.run)

    @property
    def uniform(self) -> float:
        return self._measured(self.baselines.uniform, "uniform")

    @property
    def unigram(self) -> float:
        return self._measured(self.baselines.unigram, "unigram")

    @property
    def bigram(self) -> float:
        return self._measured(self.baselines.bigram, "bigram")

    def _measured(self, loss: float | None, name: str) -> float:
        if loss is None:
            raise Unavailable(f"the {name} loss of its text is unknown: the corpus is missing." if self.run.of_words
                              else f"its main loss does not predict words, so there is no {name} loss.")
        return loss

    @property
    def curve(self) -> LossCurve:
        if not len(self.run.curve):
            raise Unavailable("its log has no loss.")
        return self.run.curve

    @property
    def loss(self) -> float:
        """The last loss."""
        return float(self.curve.losses[-1])

    @cached_property
    def reference(self) -> ReferenceComparison:
        """The comparison with the curve of the shipped model."""
        return compare_with_reference(self.run)

    @cached_property
    def stats(self) -> CheckpointStats:
        """Statistics of the newest checkpoint."""
        return checkpoint_stats(self.run)

    @cached_property
    def working(self) -> BoolArray:
        """For each line of the log: is the learning rate at least half of the highest?"""
        rates = self.run.column("learning_rate")
        if not len(rates) or not np.isfinite(rates).any():
            raise Unavailable("its log has no learning rate.")
        return rates >= 0.5 * np.nanmax(rates)

    def update_ratio(self) -> Floats:
        """For each line of the log: the largest update ratio of a parameter group."""
        groups = self.run.by_name("update_ratio")
        if not groups:
            raise Unavailable("its log has no update ratios.")
        return _largest(list(groups.values()))


def _largest(rows: list[Floats]) -> Floats:
    table = np.array(rows)
    largest: Floats = np.where(np.isfinite(table), table, -np.inf).max(axis=0)
    return np.where(np.isfinite(largest), largest, np.nan)


Check = Callable[[Case], Finding | None]


@dataclass(frozen=True)
class Disease:
    name: str
    order: int            # in the list of findings
    check: Check
    needs_curve: bool     # is a finding only possible while the curve is too short?
    symptom_of: tuple[str, ...] = ()      # diseases that cause it, without whose check it is only possible


DISEASES: dict[str, Disease] = {}


def disease(name: str, order: int, *, needs_curve: bool = True,
            symptom_of: tuple[str, ...] = ()) -> Callable[[Check], Check]:
    """Register a check in DISEASES."""

    def register(check: Check) -> Check:
        assert name not in DISEASES, f"{name} is registered twice"
        DISEASES[name] = Disease(name, order, check, needs_curve, symptom_of)
        return check

    return register
