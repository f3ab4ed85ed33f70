"""The result of a part of the evaluation: rows of the summary, each with its baselines, and details."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import InputError
from ..result import Result
from ..statistics import Interval, wilson_interval

PERCENT, NUMBER = "percent", "number"
HIGHER, LOWER = "higher", "lower"
Figure = Interval | float
_DIGITS = {PERCENT: 1, NUMBER: 3}


@dataclass(frozen=True)
class SummaryRow(Result):
    """One score of the summary. A score without a baseline is refused, because it could not be interpreted."""

    figure: str
    value: Figure
    baselines: Mapping[str, Figure] = field(default_factory=dict)
    random_init: Figure | None = None     # the score of a model of the same shape with random weights
    unit: str = PERCENT
    sample: str = ""                      # what the score was measured on
    better: str | None = None             # than all baselines, if they are to be beaten: HIGHER or LOWER

    def __post_init__(self) -> None:
        if not self.baselines and self.random_init is None:
            raise InputError(f"The score {self.figure!r} has no baseline.")


@dataclass(frozen=True)
class PartResult(Result):
    """The result of a part of the evaluation."""

    rows: list[SummaryRow]
    details: dict[str, Any]
    notes: list[str] = field(default_factory=list)


def interval(figure: Any) -> Interval:
    """A figure, possibly from JSON, as an interval; a number becomes an interval without bounds."""
    if isinstance(figure, Interval):
        return figure
    if isinstance(figure, Mapping):
        return Interval(**figure)
    return Interval(float(figure), None, None, 1)


def shown(figure: Any, unit: str = PERCENT) -> str:
    """For a table: 84.2 ± 0.6 in percent, 3.624 ± 0.010 for other numbers, an empty string for None."""
    return "" if figure is None else interval(figure).shown(_DIGITS[unit], 100.0 if unit == PERCENT else 1.0)


def with_interval(figure: Any, trials: int) -> Interval:
    """The interval over seeds; for a single seed, that of a share of `trials` trials."""
    found = interval(figure)
    return found if found.values > 1 else wilson_interval(found.mean * trials, trials)


def interval_note(seeds: int, measured_on: str = "test set") -> str:
    """The note that explains the intervals of `with_interval`."""
    return f"Intervals are over {seeds} seeds." if seeds > 1 else \
        f"One seed: intervals treat the items of the {measured_on} as independent trials."
