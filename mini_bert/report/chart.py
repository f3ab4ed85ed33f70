"""Lines over an axis, as SVG, drawn without a library.

Each line has its own colour and dashes; levels, such as a baseline's loss, are thin and labelled.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from math import ceil, floor, isfinite, log10

from .svg import WIDTH, colour, segment, stroke, svg, text

_HEIGHT = 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 28, 20, 52
_LEGEND = 12                  # height of a legend above the plot
_MARKED = 40                  # a line of at most this many points has a dot at each


@dataclass(frozen=True)
class Line:
    """The points of a line; `low` and `high`, if given, are the edges of a band around it."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None


def line_chart(lines: Sequence[Line], *, x_label: str, y_label: str, levels: Mapping[str, float] | None = None,
               legend_above: bool = False) -> str:
    """The chart as an <svg> element, with a legend in the upper right, where falling losses leave room, or above it."""
    levels = {name: level for name, level in (levels or {}).items() if isfinite(level)}
    xs = [x for line in lines for x in line.x]
    ys = [y for line in lines for y in (*line.y, *(line.low or ()), *(line.high or ()))] + list(levels.values())
    x_axis = _Axis.over([0.0, *xs], _LEFT, WIDTH - _RIGHT).ending_at_last(xs)
    y_axis = _Axis.over(ys, _HEIGHT - _BOTTOM, _TOP + (_LEGEND if legend_above else 0))
    parts = [*_grid(x_axis, y_axis, x_label, y_label), *_levels(levels, y_axis)]
    for number, points in enumerate(lines):
        parts += _line(points, number, x_axis, y_axis)
    parts += _legend([line.name for line in lines], legend_above) if len(lines) > 1 else []
    return svg(parts, _HEIGHT, f"{y_label} over {x_label}: {', '.join(line.name for line in lines)}")


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
            low, high = low - max(0.5, abs(low) / 2), high + max(0.5, abs(high) / 2)
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


def _grid(x_axis: _Axis, y_axis: _Axis, x_label: str, y_label: str) -> list[str]:
    parts = []
    for tick in y_axis.ticks:
        y = y_axis.place(tick)
        parts += [segment(_LEFT, y, WIDTH - _RIGHT, y), text(_LEFT - 8, y + 4, _tick(tick), "end")]
    parts += [text(x_axis.place(tick), _HEIGHT - _BOTTOM + 18, _tick(tick), "middle") for tick in x_axis.ticks]
    middle = (_TOP + _HEIGHT - _BOTTOM) / 2
    return [*parts, text((_LEFT + WIDTH - _RIGHT) / 2, _HEIGHT - 12, x_label, "middle"),
            text(14, middle, y_label, "middle", f' transform="rotate(-90 14 {middle})"')]


def _tick(value: float) -> str:
    """1,500 or 1.5M, 0.25 or 1e-05."""
    if value and abs(value) < 1e-2:
        return f"{value:.2g}" if abs(value) >= 1e-4 else f"{value:.0e}"
    if abs(value) >= 1e6:
        return f"{value / 1e6:,.4g}M"
    return f"{value:,.6g}" if abs(value) < 1e4 else f"{value:,.0f}"


def _levels(levels: Mapping[str, float], y_axis: _Axis) -> list[str]:
    parts = []
    for name, level in levels.items():
        y = y_axis.place(level)
        parts += [segment(_LEFT, y, WIDTH - _RIGHT, y, ' stroke="var(--ink)" stroke-dasharray="3 3" opacity="0.6"'),
                  text(_LEFT + 4, y - 4, f"{name} {level:.2f}", attributes=' opacity="0.8"')]
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


def _legend(names: Sequence[str], above: bool) -> list[str]:
    """A sample of each line with its name: in a row above the plot, or in a column inside it."""
    x, y = (_LEFT, 14) if above else (WIDTH - _RIGHT - 7 * max(map(len, names)) - 44, _TOP + 14)
    parts = []
    for number, name in enumerate(names):
        parts += [segment(x, y - 4, x + 30, y - 4, stroke(number)), text(x + 36, y, name)]
        if above:
            x += 7 * len(name) + 54
        else:
            y += 17
    return parts
