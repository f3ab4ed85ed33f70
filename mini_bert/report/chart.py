"""Lines over an axis, as SVG: no library, sharp at any size, readable in colour, in grey and in the dark.

A line is told from the others by its colour and by its dashes; levels, such as a baseline, are thin and labelled.
Colours of text, axes and background are the page's (see page.py), so one file serves light and dark.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from math import ceil, floor, isfinite, log10

_WIDTH, _HEIGHT = 720, 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 28, 20, 52
_LEGEND = 12                  # room for it above the plot
_FEW = 40                     # points of a line that are also marked one by one
# Okabe and Ito's colours, which the colour-blind tell apart
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#666666")
_DASHES = ("", "8 4", "2 3", "10 3 2 3", "5 5", "1 5", "14 4")


@dataclass(frozen=True)
class Line:
    """Points of one line; `low` and `high`, if given, are the edges of a band around it."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None


def line_chart(lines: Sequence[Line], *, x_label: str, y_label: str, levels: Mapping[str, float] | None = None,
               standalone: bool = False, legend_above: bool = False) -> str:
    """The chart as an <svg> element; `standalone` for a file of its own.

    Names of lines stand in the upper right, where falling losses leave room, or with `legend_above` over the plot.
    """
    levels = {name: level for name, level in (levels or {}).items() if isfinite(level)}
    xs = [x for line in lines for x in line.x]
    ys = [y for line in lines for y in (*line.y, *(line.low or ()), *(line.high or ()))] + list(levels.values())
    x_axis = _Axis.over([0.0, *xs], _LEFT, _WIDTH - _RIGHT).to_the_last(xs)
    y_axis = _Axis.over(ys, _HEIGHT - _BOTTOM, _TOP + (_LEGEND if legend_above else 0))
    parts = [*_grid(x_axis, y_axis, x_label, y_label), *_levels(levels, y_axis)]
    for number, line in enumerate(lines):
        parts += _line(line, number, x_axis, y_axis)
    parts += _legend([line.name for line in lines], legend_above) if len(lines) > 1 else []
    described = escape(f"{y_label} over {x_label}: {', '.join(line.name for line in lines)}")
    attributes = ' xmlns="http://www.w3.org/2000/svg"' if standalone else ""
    return (f'<svg{attributes} class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
            f'aria-label="{described}" font-family="system-ui, sans-serif" font-size="12">'
            + ('<style>:root { --ink: #222; --grid: #ddd; }</style>'
               f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>' if standalone else "")
            + "".join(parts) + "</svg>")


@dataclass(frozen=True)
class _Axis:
    """Numbers to places on the page, with ticks at round numbers."""

    low: float
    high: float
    start: float
    stop: float
    ticks: tuple[float, ...]

    @classmethod
    def over(cls, values: Sequence[float], start: float, stop: float) -> "_Axis":
        finite = [value for value in values if isfinite(value)] or [0.0, 1.0]
        low, high = min(finite), max(finite)
        if high - low <= 1e-9 * max(abs(low), abs(high)):             # one number, however large
            low, high = low - max(0.5, abs(low) / 2), high + max(0.5, abs(high) / 2)
        step = _round_step((high - low) / 6)
        low, high = step * floor(low / step + 1e-9), step * ceil(high / step - 1e-9)
        return cls(low, high, start, stop, tuple(low + step * i for i in range(round((high - low) / step) + 1)))

    def to_the_last(self, values: Sequence[float]) -> "_Axis":
        """Without room behind the greatest value."""
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
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="var(--grid)"/>'
                     f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" '
                     f'fill="var(--ink)">{_number(tick)}</text>')
    for tick in x_axis.ticks:
        x = x_axis.place(tick)
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle" '
                     f'fill="var(--ink)">{_number(tick)}</text>')
    parts.append(f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2}" y="{_HEIGHT - 12}" text-anchor="middle" '
                 f'fill="var(--ink)">{escape(x_label)}</text>'
                 f'<text x="14" y="{(_TOP + _HEIGHT - _BOTTOM) / 2}" text-anchor="middle" fill="var(--ink)" '
                 f'transform="rotate(-90 14 {(_TOP + _HEIGHT - _BOTTOM) / 2})">{escape(y_label)}</text>')
    return parts


def _number(value: float) -> str:
    """A tick: 1,500 or 1.5M, 0.25 or 1e-05."""
    if value and abs(value) < 1e-2:
        return f"{value:.2g}" if abs(value) >= 1e-4 else f"{value:.0e}"
    if abs(value) >= 1e6:
        return f"{value / 1e6:,.4g}M"
    return f"{value:,.6g}" if abs(value) < 1e4 else f"{value:,.0f}"


def _levels(levels: Mapping[str, float], y_axis: _Axis) -> list[str]:
    return [f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y_axis.place(level):.1f}" y2="{y_axis.place(level):.1f}" '
            f'stroke="var(--ink)" stroke-dasharray="3 3" opacity="0.6"/>'
            f'<text x="{_LEFT + 4}" y="{y_axis.place(level) - 4:.1f}" fill="var(--ink)" '
            f'opacity="0.8">{escape(name)} {level:.2f}</text>' for name, level in levels.items()]


def _line(line: Line, number: int, x_axis: _Axis, y_axis: _Axis) -> list[str]:
    colour, dash = _COLOURS[number % len(_COLOURS)], _DASHES[number % len(_DASHES)]
    points = [f"{x_axis.place(x):.1f},{y_axis.place(y):.1f}" for x, y in zip(line.x, line.y, strict=True)
              if isfinite(y)]
    parts = []
    if line.low is not None and line.high is not None:
        edge = [*zip(line.x, line.high, strict=True), *reversed(list(zip(line.x, line.low, strict=True)))]
        area = " ".join(f"{x_axis.place(x):.1f},{y_axis.place(y):.1f}" for x, y in edge if isfinite(y))
        parts.append(f'<polygon points="{area}" fill="{colour}" opacity="0.2"/>')
    parts.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-width="2" '
                 f'stroke-dasharray="{dash}" stroke-linejoin="round"><title>{escape(line.name)}</title></polyline>')
    if len(points) <= _FEW:
        parts += [f'<circle cx="{x}" cy="{y}" r="2.5" fill="{colour}"/>' for x, y in (p.split(",") for p in points)]
    return parts


def _legend(names: Sequence[str], above: bool) -> list[str]:
    """A line and its name for each: one below the other, or beside each other above the plot."""
    widest = max(map(len, names))
    x, y = (_LEFT, 14) if above else (_WIDTH - _RIGHT - 7 * widest - 44, _TOP + 14)
    parts = []
    for number, name in enumerate(names):
        left = x
        parts.append(f'<line x1="{left}" x2="{left + 30}" y1="{y - 4}" y2="{y - 4}" '
                     f'stroke="{_COLOURS[number % len(_COLOURS)]}" stroke-width="2" '
                     f'stroke-dasharray="{_DASHES[number % len(_DASHES)]}"/>'
                     f'<text x="{left + 36}" y="{y}" fill="var(--ink)">{escape(name)}</text>')
        if above:
            x += 7 * len(name) + 54
        else:
            y += 17
    return parts
