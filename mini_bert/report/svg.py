"""What all SVG charts share: the frame, text, and the colour and dashes of each series.

Text, axes and background take their colours from the page's CSS variables (see page.py), so one chart serves light
and dark mode.
"""

from collections.abc import Iterable
from html import escape

from ..palette import COLOURS, DASHES

WIDTH = 720
LINE_WIDTH = 2


def svg(parts: Iterable[str], height: float, label: str, kind: str = "lines") -> str:
    """An <svg> element of these parts; screen readers read the label. On narrow screens the text of `lines` grows, and
    what is `wide` is scrolled: see page.py."""
    return (f'<svg class="chart {kind}" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}" '
            f'font-family="system-ui, sans-serif" font-size="12">{"".join(parts)}</svg>')


def text(x: float, y: float, content: str, anchor: str = "start", attributes: str = "") -> str:
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="var(--ink)"{attributes}>'
            f"{escape(content)}</text>")


def segment(x1: float, y1: float, x2: float, y2: float, attributes: str = ' stroke="var(--grid)"') -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"{attributes}/>'


def colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def stroke(number: int) -> str:
    """The attributes of the line of a series: its colour and dashes."""
    dashes = " ".join(str(length * LINE_WIDTH) for length in DASHES[number % len(DASHES)])
    return f' stroke="{colour(number)}" stroke-width="{LINE_WIDTH}" stroke-dasharray="{dashes}"'
