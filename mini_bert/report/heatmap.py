"""A matrix as coloured cells with their numbers, as SVG: the greater the number, the deeper the colour."""

from collections.abc import Sequence
from html import escape

from .svg import WIDTH, svg, text

_LEFT, _TOP, _RIGHT = 110, 46, 20
_TALLEST, _WIDEST = 34, 96
_DEEPEST = 0.6                # opacity at which numbers stay legible, in light and dark mode


def heat_map(values: Sequence[Sequence[float]], rows: Sequence[str], columns: Sequence[str], *, title: str) -> str:
    """Cells coloured from 0 (none) to 1 (deepest); numbers outside have the colour of the nearest end."""
    wide = min(_WIDEST, (WIDTH - _LEFT - _RIGHT) / max(len(columns), 1))
    parts = [text(_LEFT, 14, title)]
    parts += [text(_LEFT + wide * (j + 0.5), _TOP - 8, name, "middle") for j, name in enumerate(columns)]
    for i, (name, row) in enumerate(zip(rows, values, strict=True)):
        y = _TOP + _TALLEST * i
        parts.append(text(_LEFT - 8, y + _TALLEST / 2 + 4, name, "end"))
        for j, value in enumerate(row):
            x, depth = _LEFT + wide * j, _DEEPEST * min(max(value, 0.0), 1.0)
            parts += [f'<rect x="{x:.1f}" y="{y}" width="{wide - 1:.1f}" height="{_TALLEST - 1}" '
                      f'fill="var(--accent)" fill-opacity="{depth:.3f}" stroke="var(--grid)">'
                      f"<title>{escape(f'{name}, {columns[j]}: {value:.3f}')}</title></rect>",
                      text(x + wide / 2, y + _TALLEST / 2 + 4, f"{value:.2f}", "middle")]
    return f'<div class="scroll">{svg(parts, _TOP + _TALLEST * len(rows) + 14, title, "wide")}</div>'
