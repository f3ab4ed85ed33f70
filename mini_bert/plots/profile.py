"""Figures of time: the operations of a step as bars."""

from collections.abc import Mapping

from ..palette import COLOURS
from .style import Picture, new_figure, styled

_LEAST = 0.005                # smallest share of a step that gets a separate bar


@styled
def plot_profile(seconds: Mapping[str, float], floor: float) -> Picture:
    """The seconds of each operation in a step, the dearest on top, and a line at the time of the products alone.

    Each bar begins where the one above it ends, so the last one ends at the time of the step.
    """
    total = sum(seconds.values())
    large = {name: spent for name, spent in seconds.items() if spent >= _LEAST * total}
    shown = {**large, "all others": total - sum(large.values())}
    figure = new_figure(7.0, 0.24 * len(shown) + 1.2)
    axes = figure.subplots()
    begin = 0.0
    for place, spent in enumerate(shown.values()):
        axes.barh(place, 1e3 * spent, left=1e3 * begin, color=COLOURS[0])
        axes.text(1e3 * (begin + spent), place, f" {spent / total:.1%}", va="center", fontsize=7)
        begin += spent
    axes.axvline(1e3 * floor, color=COLOURS[1], linestyle="--", label="the products alone")
    axes.set_yticks(range(len(shown)), list(shown))
    axes.invert_yaxis()
    axes.set_xlim(0, 1.08e3 * total)
    axes.set_xlabel("ms")
    axes.legend(loc="lower left")
    return figure
