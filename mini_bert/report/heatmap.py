"""A matrix as coloured cells with their numbers, as SVG: the deeper the colour, the greater the number."""

from collections.abc import Sequence
from html import escape

_WIDTH, _LEFT, _TOP, _RIGHT = 720, 110, 46, 20
_TALLEST, _WIDEST = 34, 96
_MOST = 0.6                   # of the colour: numbers stay legible on it, in light and in dark


def heat_map(values: Sequence[Sequence[float]], rows: Sequence[str], columns: Sequence[str], *, title: str,
             low: float = 0.0, high: float = 1.0) -> str:
    """Cells from `low`, without colour, to `high`; numbers beyond have the colour of the nearest end."""
    wide = min(_WIDEST, (_WIDTH - _LEFT - _RIGHT) / max(len(columns), 1))
    height = _TOP + _TALLEST * len(rows) + 14
    parts = [f'<text x="{_LEFT}" y="14" fill="var(--ink)">{escape(title)}</text>']
    parts += [f'<text x="{_LEFT + wide * (j + 0.5):.1f}" y="{_TOP - 8}" text-anchor="middle" '
              f'fill="var(--ink)">{escape(name)}</text>' for j, name in enumerate(columns)]
    for i, (name, row) in enumerate(zip(rows, values, strict=True)):
        y = _TOP + _TALLEST * i
        parts.append(f'<text x="{_LEFT - 8}" y="{y + _TALLEST / 2 + 4}" text-anchor="end" '
                     f'fill="var(--ink)">{escape(name)}</text>')
        for j, value in enumerate(row):
            depth = _MOST * min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.0
            x = _LEFT + wide * j
            parts.append(f'<rect x="{x:.1f}" y="{y}" width="{wide - 1:.1f}" height="{_TALLEST - 1}" '
                         f'fill="var(--accent)" fill-opacity="{depth:.3f}" stroke="var(--grid)">'
                         f'<title>{escape(f"{name}, {columns[j]}: {value:.3f}")}</title></rect>'
                         f'<text x="{x + wide / 2:.1f}" y="{y + _TALLEST / 2 + 4}" text-anchor="middle" '
                         f'fill="var(--ink)">{value:.2f}</text>')
    return (f'<svg class="chart" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title)}" '
            f'font-family="system-ui, sans-serif" font-size="12">{"".join(parts)}</svg>')
