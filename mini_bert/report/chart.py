"""Lines over an axis, as SVG, drawn without a library.

Each line has its own colour and dashes, which the legend above the chart shows. Levels, such as a baseline's loss, are
thin, and labelled beside the chart. Nothing is written over a line.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from math import ceil, floor, isfinite, log10

from .svg import WIDTH, colour, segment, stroke, svg, text

_HEIGHT = 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 28, 12, 56
_LABELS = 144                 # width of the labels of levels, at the right of the plot
_TINY = 1e-300                # a smaller number is drawn as zero
_APART = 20                   # least distance of two labels
_MARKED = 40                  # a line of at most this many points has a dot at each


@dataclass(frozen=True)
class Line:
    """The points of a line; `low` and `high`, if given, are the edges of a band around it."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None


def line_chart(lines: Sequence[Line], *, x_label: str, y_label: str,
               levels: Mapping[str, float] | None = None) -> str:
    """The chart as a <figure>: a legend if there are several lines, what the y-axis counts, the <svg>, and levels that
    are too far away to be drawn."""
    xs = [x for line in lines for x in line.x]
    ys = [y for line in lines for y in (*line.y, *(line.low or ()), *(line.high or ()))]
    near, far = _by_distance(levels or {}, ys)
    right = WIDTH - (_LABELS if near else _RIGHT)
    x_axis = _Axis.over([0.0, *xs], _LEFT, right).ending_at_last(xs)
    y_axis = _Axis.over([*ys, *near.values()], _HEIGHT - _BOTTOM, _TOP)
    parts = [*_grid(x_axis, y_axis, x_label), *_levels(near, x_axis, y_axis)]
    for number, points in enumerate(lines):
        parts += _line(points, number, x_axis, y_axis)
    drawn = svg(parts, _HEIGHT, f"{y_label} over {x_label}: {', '.join(line.name for line in lines)}")
    beyond = ", ".join(f"{name} {level:.2f}" for name, level in far.items())
    named = f'<p class="axis">{escape(y_label)}</p>'      # upright, and above the numbers that it is about
    return ("<figure>" + (_legend([line.name for line in lines]) if len(lines) > 1 else "") + named + drawn
            + (f"<figcaption>Beyond this scale: {escape(beyond)}.</figcaption>" if far else "") + "</figure>")


def _by_distance(levels: Mapping[str, float], ys: Sequence[float]) -> tuple[dict[str, float], dict[str, float]]:
    """The levels that are as near to the lines as the lines are high, and the others, which would flatten them."""
    known = {name: level for name, level in levels.items() if isfinite(level)}
    finite = [y for y in ys if isfinite(y)]
    if not finite:
        return known, {}
    low, high = min(finite), max(finite)
    room = max(high - low, 0.05 * abs(high))
    near = {name: level for name, level in known.items() if low - room <= level <= high + room}
    return near, {name: level for name, level in known.items() if name not in near}


@dataclass(frozen=True)
class _Axis:
    """Maps numbers to places on the page, with ticks at round numbers."""

    low: float
    high: float
    start: float
    stop: float
    ticks: tuple[float, ...]

    @classmethod
    def over(cls, values: Sequence[float], start: float, stop: float) -> "_Axis":
        finite = [value for value in values if isfinite(value)] or [0.0, 1.0]
        low, high = min(finite), max(finite)
        if high - low <= 1e-9 * max(abs(low), abs(high)):             # equal numbers, of any size
            half = abs(low) / 2 if abs(low) > _TINY else 0.5
            low, high = low - half, high + half
        step = _round_step((high - low) / 6)
        low, high = step * floor(low / step + 1e-9), step * ceil(high / step - 1e-9)
        return cls(low, high, start, stop, tuple(low + step * i for i in range(round((high - low) / step) + 1)))

    def ending_at_last(self, values: Sequence[float]) -> "_Axis":
        """The axis cut at the greatest value."""
        high = max((value for value in values if isfinite(value)), default=self.high)
        return self if high <= self.low else replace(
            self, high=high, ticks=tuple(tick for tick in self.ticks if tick <= high))

    def place(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.stop - self.start)


def _round_step(rough: float) -> float:
    """1, 2 or 5 times a power of ten, at least as large as `rough`."""
    power = 10.0 ** floor(log10(rough))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= rough * (1 - 1e-9))


def _grid(x_axis: _Axis, y_axis: _Axis, x_label: str) -> list[str]:
    parts = []
    for tick in y_axis.ticks:
        y = y_axis.place(tick)
        parts += [segment(_LEFT, y, x_axis.stop, y), text(_LEFT - 8, y + 4, _tick(tick), "end")]
    for number, tick in enumerate(x_axis.ticks):          # every second one is left out where there is little room
        parts.append(text(x_axis.place(tick), _HEIGHT - _BOTTOM + 20, _tick(tick), "middle",
                          ' class="minor"' if number % 2 else ""))
    return [*parts, text((_LEFT + x_axis.stop) / 2, _HEIGHT - 8, x_label, "middle")]


def _tick(value: float) -> str:
    """1,500 or 1.5M, 0.25 or 1e-05."""
    if value and abs(value) < 1e-2:
        return f"{value:.2g}" if abs(value) >= 1e-4 else f"{value:.0e}"
    if abs(value) >= 1e6:
        return f"{value / 1e6:,.4g}M"
    return f"{value:,.6g}" if abs(value) < 1e4 else f"{value:,.0f}"


def _levels(levels: Mapping[str, float], x_axis: _Axis, y_axis: _Axis) -> list[str]:
    """Thin lines, with labels at their right; labels of near levels are moved apart."""
    parts, above = [], float("-inf")
    for name, level in sorted(levels.items(), key=lambda item: -item[1]):
        y = y_axis.place(level)
        label = max(y, above + _APART)
        above = label
        parts += [segment(_LEFT, y, x_axis.stop, y, ' stroke="var(--ink)" stroke-dasharray="3 3" opacity="0.6"'),
                  segment(x_axis.stop, y, x_axis.stop + 6, label, ' stroke="var(--ink)" opacity="0.6"'),
                  text(x_axis.stop + 9, label + 4, f"{name} {level:.2f}", attributes=' opacity="0.9"')]
    return parts


def _line(points: Line, number: int, x_axis: _Axis, y_axis: _Axis) -> list[str]:
    def places(y: Sequence[float]) -> list[str]:
        return [f"{x_axis.place(a):.1f},{y_axis.place(b):.1f}" for a, b in zip(points.x, y, strict=True) if isfinite(b)]

    parts, drawn = [], places(points.y)
    if points.low is not None and points.high is not None:
        edge = [*places(points.high), *reversed(places(points.low))]
        parts.append(f'<polygon points="{" ".join(edge)}" fill="{colour(number)}" opacity="0.2"/>')
    parts.append(f'<polyline points="{" ".join(drawn)}" fill="none"{stroke(number)} stroke-linejoin="round">'
                 f"<title>{escape(points.name)}</title></polyline>")
    if len(drawn) <= _MARKED:
        parts += [f'<circle cx="{x}" cy="{y}" r="2.5" fill="{colour(number)}"/>'
                  for x, y in (place.split(",") for place in drawn)]
    return parts


def _legend(names: Sequence[str]) -> str:
    """A sample of each line with its name."""
    samples = "".join(f'<li><svg viewBox="0 0 32 10" aria-hidden="true">{segment(0, 5, 32, 5, stroke(number))}</svg>'
                      f"{escape(name)}</li>" for number, name in enumerate(names))
    return f'<ul class="legend">{samples}</ul>'
