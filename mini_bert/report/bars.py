"""Horizontal bars with their intervals, as SVG.

The series of a group differ in colour and opacity; levels, such as chance, are dashed vertical lines.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape

from .svg import WIDTH, colour, segment, svg, text

_LEFT, _RIGHT, _TOP, _BOTTOM = 230, 56, 26, 44
_BAR, _GAP = 13, 9
_OPACITY = (1.0, 0.75, 0.5, 0.35)         # so that series differ in greyscale too


@dataclass(frozen=True)
class Bar:
    """A value, with the limits of its interval if it has one."""

    value: float
    low: float | None = None
    high: float | None = None


def bar_chart(groups: Mapping[str, Mapping[str, Bar]], *, x_label: str,
              levels: Mapping[str, float] | None = None) -> str:
    """Bars from 0 to 1, labelled in percent: `groups[name of the group][name of the series]`."""
    series = list(dict.fromkeys(name for bars in groups.values() for name in bars))
    top = _TOP + (18 if len(series) > 1 else 0)
    height = top + sum(len(bars) * _BAR + _GAP for bars in groups.values()) + _BOTTOM
    right, bottom = WIDTH - _RIGHT, height - _BOTTOM

    def place(value: float) -> float:
        return _LEFT + min(max(value, 0.0), 1.0) * (right - _LEFT)

    parts = []
    for percent in range(0, 101, 20):
        x = place(percent / 100)
        parts += [segment(x, top, x, bottom), text(x, bottom + 16, str(percent), "middle")]
    y = float(top)
    for group, bars in groups.items():
        parts.append(text(_LEFT - 8, y + len(bars) * _BAR / 2 + 4, group, "end"))
        for name, bar in bars.items():
            parts += _bar(bar, series.index(name), y, place, f"{group}, {name}")
            y += _BAR
        y += _GAP
    for name, level in (levels or {}).items():
        x = place(level)
        parts += [segment(x, top - 4, x, bottom, ' stroke="var(--ink)" stroke-dasharray="4 3"'),
                  text(x, top - 8, name, "middle")]
    x = float(_LEFT)
    for number, name in enumerate(series if len(series) > 1 else ()):
        parts += [f'<rect x="{x:.1f}" y="4" width="12" height="10"{_fill(number)}/>', text(x + 17, 13, name)]
        x += 36 + 7 * len(name)
    drawn = svg([*parts, text((_LEFT + right) / 2, height - 8, x_label, "middle")], height, x_label, "wide")
    return f'<div class="scroll">{drawn}</div>'


def _fill(number: int) -> str:
    return f' fill="{colour(number)}" opacity="{_OPACITY[number % len(_OPACITY)]}"'


def _bar(bar: Bar, number: int, y: float, place: Callable[[float], float], name: str) -> list[str]:
    end, middle, shown = place(bar.value), y + (_BAR - 2) / 2, f"{100 * bar.value:.1f}"
    parts = [f'<rect x="{_LEFT}" y="{y:.1f}" width="{end - _LEFT:.1f}" height="{_BAR - 2}"{_fill(number)}>'
             f"<title>{escape(name)}: {shown}</title></rect>"]
    if bar.low is not None and bar.high is not None and bar.high > bar.low:
        low, high = place(bar.low), place(bar.high)
        parts.append(f'<path d="M{low:.1f} {middle - 3:.1f}v6M{low:.1f} {middle:.1f}H{high:.1f}M{high:.1f} '
                     f'{middle - 3:.1f}v6" stroke="var(--ink)" fill="none"/>')
        end = max(end, high)
    # outlined in the background colour, so that no level line crosses the digits
    return [*parts, text(end + 5, middle + 4, shown, attributes=' font-size="10" stroke="var(--paper)" '
                                                                'stroke-width="3" paint-order="stroke"')]
