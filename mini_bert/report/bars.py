"""Bars with their intervals, as SVG, in the manner of chart.py; they lie, so that their names can be read.

Series are told apart by colour and by depth, levels, such as chance, are lines.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 720, 230, 56, 26, 44
_BAR, _GAP = 13, 9
_COLOURS = ("var(--accent)", "#d55e00", "#009e73", "#cc79a7")
_OPACITY = (1.0, 0.75, 0.5, 0.35)         # in grey, too, one series is told from another


@dataclass(frozen=True)
class Bar:
    """A value with its interval, if it has one."""

    value: float
    low: float | None = None
    high: float | None = None


def bar_chart(groups: Mapping[str, Mapping[str, Bar]], *, x_label: str, levels: Mapping[str, float] | None = None,
              longest: float = 1.0, percent: bool = True) -> str:
    """Groups of bars, from zero to `longest`: the name of a group, then of a series in it, then the bar."""
    series = list(dict.fromkeys(name for bars in groups.values() for name in bars))
    top = _TOP + (18 if len(series) > 1 else 0)
    height = top + sum(len(bars) * _BAR + _GAP for bars in groups.values()) + _BOTTOM
    right = _WIDTH - _RIGHT

    def place(value: float) -> float:
        return _LEFT + min(max(value, 0.0), longest) / longest * (right - _LEFT)

    def shown(value: float) -> str:
        return f"{100 * value:.1f}" if percent else f"{value:.2f}"

    parts = [f'<line x1="{place(tick):.1f}" x2="{place(tick):.1f}" y1="{top}" y2="{height - _BOTTOM}" '
             f'stroke="var(--grid)"/><text x="{place(tick):.1f}" y="{height - _BOTTOM + 16}" text-anchor="middle" '
             f'fill="var(--ink)">{100 * tick:g}</text>' for tick in (longest * i / 5 for i in range(6))]
    y = float(top)
    for name, bars in groups.items():
        parts.append(f'<text x="{_LEFT - 8}" y="{y + len(bars) * _BAR / 2 + 4:.1f}" text-anchor="end" '
                     f'fill="var(--ink)">{escape(name)}</text>')
        for of, bar in bars.items():
            parts += _bar(bar, series.index(of), y, place, f"{name}, {of}: {shown(bar.value)}", shown(bar.value))
            y += _BAR
        y += _GAP
    for name, level in (levels or {}).items():
        parts.append(f'<line x1="{place(level):.1f}" x2="{place(level):.1f}" y1="{top - 4}" y2="{height - _BOTTOM}" '
                     f'stroke="var(--ink)" stroke-dasharray="4 3"/><text x="{place(level):.1f}" y="{top - 8}" '
                     f'text-anchor="middle" fill="var(--ink)">{escape(name)}</text>')
    parts += _legend(series) if len(series) > 1 else []
    parts.append(f'<text x="{(_LEFT + right) / 2}" y="{height - 8}" text-anchor="middle" '
                 f'fill="var(--ink)">{escape(x_label)}</text>')
    return (f'<svg class="chart" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(x_label)}" '
            f'font-family="system-ui, sans-serif" font-size="12">{"".join(parts)}</svg>')


def _bar(bar: Bar, number: int, y: float, place: Callable[[float], float], title: str, text: str) -> list[str]:
    colour, opacity = _COLOURS[number % len(_COLOURS)], _OPACITY[number % len(_OPACITY)]
    end, middle = place(bar.value), y + (_BAR - 2) / 2
    parts = [f'<rect x="{_LEFT}" y="{y:.1f}" width="{end - _LEFT:.1f}" height="{_BAR - 2}" fill="{colour}" '
             f'opacity="{opacity}"><title>{escape(title)}</title></rect>']
    if bar.low is not None and bar.high is not None and bar.high > bar.low:
        low, high = place(bar.low), place(bar.high)
        parts.append(f'<path d="M{low:.1f} {middle - 3:.1f}v6M{low:.1f} {middle:.1f}H{high:.1f}M{high:.1f} '
                     f'{middle - 3:.1f}v6" stroke="var(--ink)" fill="none"/>')
        end = max(end, high)
    # with a seam in the colour of the page, so that a line behind it does not cross the number
    parts.append(f'<text x="{end + 5:.1f}" y="{middle + 4:.1f}" fill="var(--ink)" font-size="10" '
                 f'stroke="var(--paper)" stroke-width="3" paint-order="stroke">{text}</text>')
    return parts


def _legend(series: Sequence[str]) -> list[str]:
    parts, x = [], float(_LEFT)
    for number, name in enumerate(series):
        parts.append(f'<rect x="{x:.1f}" y="4" width="12" height="10" fill="{_COLOURS[number % len(_COLOURS)]}" '
                     f'opacity="{_OPACITY[number % len(_OPACITY)]}"/><text x="{x + 17:.1f}" y="13" '
                     f'fill="var(--ink)">{escape(name)}</text>')
        x += 36 + 7 * len(name)
    return parts
