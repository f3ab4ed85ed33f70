"""An entry of the timeline: a function from a model to named numbers, and how they are shown.

    def measure(model, tokenizer, data):
        return {"one line": 0.5, "another": wilson_interval(3, 4), "not to be had": None}

    register("timeline", "my_figure")(TimelineEntry("My figure", measure))

A figure of your own is such a function in a file that `--import FILE` names. `data` (data.py) has texts, sentences and
the run's corpus; `needs` says which of them must be there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ...core.model import MiniBERT
from ...core.registry import find, words
from ...errors import InputError
from ...evaluation.statistics import Interval
from ...text.tokenizer import Tokenizer
from .data import TimelineData

SHARE, NUMBER = "share", "number"         # how a figure is shown: in percent, or as it is

Figures = Mapping[str, Interval | float | None]                   # by the name of a line
Measure = Callable[[MiniBERT, Tokenizer, TimelineData], Figures]
Levels = Callable[[MiniBERT, Tokenizer, TimelineData], Mapping[str, Mapping[str, float]]]     # of each line, by name


@dataclass(frozen=True)
class TimelineEntry:
    """One panel of the timeline, or one for each line if they stand `apart`."""

    title: str
    measure: Measure
    needs: tuple[str, ...] = ()           # kinds of data: pairs, agreement, treebank, corpus, text
    unit: str = SHARE
    levels: Levels | None = None          # what a line is held against; the same for every snapshot
    apart: bool = False
    columns: Mapping[str, str] = field(default_factory=dict)      # of the table: heading -> line
    logged: Mapping[str, str] = field(default_factory=dict)       # line -> column of the run's log, if not measured


def chosen_entries(only: Sequence[str] | None = None) -> dict[str, TimelineEntry]:
    """The named entries in the order of their registration; all for None."""
    known = words("timeline")
    for name in only or ():
        if name not in known:
            raise InputError(f"The timeline has no entry {name[:100]!r}; choose some of {', '.join(known)}.")
    return {name: find("timeline", name).named for name in known if not only or name in only}
