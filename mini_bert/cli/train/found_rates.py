"""How a search for a learning rate is printed, by find-lr and by finetune --find-lr."""

from dataclasses import asdict
from math import isfinite
from typing import Any

from ...training.finder import Search
from ..output import table

_BAR = 40


def search_data(search: Search) -> dict[str, Any]:
    """For --json."""
    return asdict(search)


def shown_search(search: Search) -> list[object]:
    """The loss at each rate, with a bar between the lowest loss and that of the start, and the suggestion."""
    rows = table("learning rate", "steps", "loss", "", right=("learning rate", "steps", "loss"))
    lowest = min(search.losses)
    for rate, steps, loss in zip(search.rates, search.steps, search.losses, strict=True):
        share = (loss - lowest) / ((search.start - lowest) or 1)
        mark = " [bold]<[/bold]" if rate == search.suggestion else ""
        bar = "above the start" if search.burst is not None and rate >= search.burst else \
            "#" * round(1 + (_BAR - 1) * min(share, 1.0))
        rows.add_row(f"{rate:.1e}", f"{steps}", f"{loss:.3f}" if isfinite(loss) else "-", bar + mark)
    burst = f" Training at {search.burst:.1e} ends above the initial loss, {search.start:.3f}." \
        if search.burst is not None else ""
    edge = " A better one may lie outside the range that was searched." if search.at_the_edge else ""
    return [rows, "", f"The best rate is [bold]{search.suggestion:.1e}[/bold].{edge}{burst}"]
