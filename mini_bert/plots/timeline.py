"""The timeline of a run in one picture: large panels with labelled lines, and below them small multiples.

All panels have the same logarithmic axis of tokens. Bands are intervals, and levels are what a line is held against.
"""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from ..palette import COLOURS
from .style import Picture, draw_line, new_figure, styled

_WIDTH = 11.0                             # inches
_LARGE, _SMALL = (3, 2.3), (7, 1.45)      # panels in a row, inches of a row
_HEADING = 0.35
_LEVELS = (":", "--", "-.")               # of the levels of a panel, in their order
_LABEL, _NOTE = 7.0, 6.5                  # sizes of text
_DISTANCE = 0.095                         # between two labels, as a share of a panel's height

Values = npt.NDArray[np.float64]


@styled
def plot_timeline(timeline: Mapping[str, Any]) -> Picture:
    """The content of timeline.json: panels that stand apart have a small one for each of their lines."""
    panels = [panel for panel in timeline["panels"] if panel["lines"]]
    if not panels or not timeline["tokens"]:
        raise ValueError("The timeline has nothing to draw.")
    x = _positive(np.array(timeline["tokens"], np.float64))
    together = [panel for panel in panels if not panel["apart"]]
    groups: list[tuple[str, list[Any]]] = [("", together)] if together else []
    groups += [(_heading(panel), panel["lines"]) for panel in panels if panel["apart"]]
    shapes = [_shape(len(members), *(_SMALL if heading else _LARGE)) for heading, members in groups]
    heights = [rows * inches + _HEADING for rows, _, inches in shapes]
    figure = new_figure(_WIDTH, sum(heights))
    parts = figure.subfigures(len(groups), 1, height_ratios=heights, squeeze=False)[:, 0]
    for part, (heading, members), (rows, columns, _) in zip(parts, groups, shapes, strict=True):
        grid = part.subplots(rows, columns, sharex=True, sharey=bool(heading), squeeze=False)
        for number, axes in enumerate(grid.flat):
            if number >= len(members):
                axes.set_visible(False)
                continue
            if heading:
                _small(axes, x, members[number], _factor(next(p for p in panels if p["lines"] is members)))
            else:
                _large(axes, x, members[number])
            _tokens(axes, x, last=number + columns >= len(members))
        if heading:
            part.suptitle(heading, x=0.01, ha="left", fontsize=9.0)
    return figure


def _shape(count: int, most: int, inches: float) -> tuple[int, int, float]:
    """Rows and columns for this many panels, as even as possible, and the height of a row."""
    rows = ceil(count / most)
    return rows, ceil(count / rows), inches


def _positive(tokens: Values) -> Values:
    """A model that has seen nothing stands a little before the first that has."""
    seen = tokens[tokens > 0]
    return np.where(tokens > 0, tokens, seen.min() / 2 if len(seen) else 1.0)


def _factor(panel: Mapping[str, Any]) -> float:
    return 100.0 if panel["unit"] == "share" else 1.0


def _values(found: Sequence[float | None], factor: float) -> Values:
    return factor * np.array([np.nan if value is None else value for value in found], np.float64)


def _heading(panel: Mapping[str, Any]) -> str:
    """The title of small multiples, with the names of their levels."""
    names = list(dict.fromkeys(name for line in panel["lines"] for name in line["levels"]))
    strokes = [f"{word}: {name}" for word, name in zip(("dotted", "dashed", "dash-dotted"), names, strict=False)]
    return "   ".join([panel["title"] + (" (%)" if panel["unit"] == "share" else ""), ", ".join(strokes)]).rstrip()


def _draw(axes: Axes, x: Values, line: Mapping[str, Any], number: int, factor: float) -> None:
    """A line with its band."""
    low, high = (_values(line[key], factor) for key in ("low", "high"))
    axes.fill_between(x, low, high, color=COLOURS[number % len(COLOURS)], alpha=0.12, linewidth=0)
    draw_line(axes, x, _values(line["values"], factor), number, marker="o", markersize=2)


def _small(axes: Axes, x: Values, line: Mapping[str, Any], factor: float) -> None:
    _draw(axes, x, line, 0, factor)
    for style, level in zip(_LEVELS, line["levels"].values(), strict=False):
        axes.axhline(factor * level, color="#666666", linewidth=0.9, linestyle=style)
    axes.set_title(line["name"], fontsize=_NOTE)
    axes.tick_params(labelsize=_NOTE)
    axes.yaxis.set_major_locator(MaxNLocator(4))


def _large(axes: Axes, x: Values, panel: Mapping[str, Any]) -> None:
    factor, lines = _factor(panel), panel["lines"]
    for number, line in enumerate(lines):
        _draw(axes, x, line, number, factor)
    own = _draw_levels(axes, x, lines, factor)
    unit = " (%)" if panel["unit"] == "share" else ""
    axes.set_title(panel["title"] + unit + (f"   dashed: {own}" if own else ""))
    axes.tick_params(labelsize=_LABEL)
    axes.margins(y=0.12)
    if panel["unit"] == "share":                  # nothing is below none, and noughts alone are no range
        low, high = axes.get_ylim()
        axes.set_ylim(max(low, 0.0) if high > 0.5 else -0.05, max(high, 1.0))
    if len(lines) > 1:
        _label(axes, [(line["name"], _values(line["values"], factor)) for line in lines])


def _draw_levels(axes: Axes, x: Values, lines: Sequence[Mapping[str, Any]], factor: float) -> str:
    """A level that all lines share is grey and named; the names of those that each line has for itself are returned."""
    own: list[str] = []
    names = list(dict.fromkeys(name for line in lines for name in line["levels"]))
    for place, name in enumerate(names):
        values = [factor * line["levels"][name] for line in lines if name in line["levels"]]
        if np.ptp(values) < 1e-9:
            left = place % 2 == 0                 # two levels may be near each other
            axes.axhline(values[0], color="#666666", linewidth=0.9, linestyle=":")
            axes.annotate(name, (0.01 if left else 0.99, values[0]), xycoords=axes.get_yaxis_transform(), va="bottom",
                          ha="left" if left else "right", fontsize=_NOTE, color="#444444",
                          bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.5}, zorder=1.9)
            continue
        own.append(name)
        for number, line in enumerate(lines):
            if name in line["levels"]:
                axes.axhline(factor * line["levels"][name], color=COLOURS[number % len(COLOURS)], linewidth=0.8,
                             linestyle="--", alpha=0.7)
    return ", ".join(own)


def _label(axes: Axes, lines: Sequence[tuple[str, Values]]) -> None:
    """The names next to the ends of the lines, moved apart where they would overlap."""
    low, high = axes.get_ylim()
    known = [(name, number, values[np.isfinite(values)][-1]) for number, (name, values) in enumerate(lines)
             if np.isfinite(values).any()]
    known.sort(key=lambda end: end[2])
    places = [(float(value) - low) / (high - low) for _, _, value in known]
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + _DISTANCE)
    over = max(0.0, places[-1] - 1.0) if places else 0.0
    for i in reversed(range(len(places))):        # back into the panel, from the top
        places[i] = min(places[i], (places[i + 1] - _DISTANCE) if i + 1 < len(places) else places[i] - over)
    for (name, number, _), place in zip(known, places, strict=True):
        axes.annotate(name, (1.02, place), xycoords="axes fraction", va="center", ha="left", fontsize=_LABEL,
                      color=COLOURS[number % len(COLOURS)], annotation_clip=False)


def _tokens(axes: Axes, x: Values, last: bool) -> None:
    """The axis of tokens, with numbers in the last row."""
    axes.set_xscale("log")
    axes.set_xlim(x.min() / 1.25, x.max() * 1.25)
    axes.xaxis.set_major_locator(LogLocator(numticks=5))
    axes.xaxis.set_major_formatter(FuncFormatter(_amount))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(axis="x", labelbottom=last)
    if last:
        axes.set_xlabel("tokens", fontsize=_NOTE, labelpad=1)


def _amount(number: float, _: object = None) -> str:
    """10,000 as 10k."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:g}{unit}"
    return f"{number:g}"
