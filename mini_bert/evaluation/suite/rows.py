"""What a part of an evaluation gives: rows for the summary, each with its baselines, and the details behind them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import InputError
from ..statistics import Interval, share

PERCENT, NUMBER = "percent", "number"
Figure = Interval | float
_DIGITS = {PERCENT: 1, NUMBER: 3}


@dataclass(frozen=True)
class Row:
    """One figure. Without anything to compare it with it says nothing, and is refused."""

    figure: str
    value: Figure
    baselines: Mapping[str, Figure] = field(default_factory=dict)
    random: Figure | None = None          # the same of a model of this shape with random weights
    unit: str = PERCENT
    sample: str = ""                      # what it was measured on, and how much of it

    def __post_init__(self) -> None:
        if not self.baselines and self.random is None:
            raise InputError(f"The figure {self.figure!r} has no baseline to be compared with.")

    def to_dict(self) -> dict[str, Any]:
        return {"figure": self.figure, "value": plain(self.value), "unit": self.unit,
                "baselines": {name: plain(value) for name, value in self.baselines.items()},
                "random_init": None if self.random is None else plain(self.random), "sample": self.sample}


@dataclass(frozen=True)
class Measured:
    """The result of a part."""

    rows: list[Row]
    details: dict[str, Any]
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return {"rows": [row.to_dict() for row in self.rows], "details": self.details, "notes": self.notes}


def plain(figure: Figure) -> Any:
    """A figure as JSON has it: a number, or an interval by its fields."""
    return figure._asdict() if isinstance(figure, Interval) else figure


def interval(figure: Any) -> Interval:
    """A figure, also one that JSON has held; a number has no width."""
    if isinstance(figure, Interval):
        return figure
    if isinstance(figure, Mapping):
        return Interval(**figure)
    return Interval(float(figure), None, None, 1)


def shown(figure: Any, unit: str = PERCENT) -> str:
    """For a table: 84.2 ± 0.6 in percent, 3.624 ± 0.010 for other numbers, nothing for None."""
    return "" if figure is None else interval(figure).shown(_DIGITS[unit], 100.0 if unit == PERCENT else 1.0)


def sure(figure: Any, trials: int) -> Interval:
    """The interval over seeds, or, if there is one seed alone, that of a share of so many trials."""
    found = interval(figure)
    return found if found.values > 1 else share(found.mean * trials, trials)


def how_sure(seeds: int, measured_on: str = "test set") -> str:
    """The note that goes with `sure`."""
    return f"Intervals are over {seeds} seeds." if seeds > 1 else \
        f"One seed: the interval is that of a share, as if the items of the {measured_on} were independent."
