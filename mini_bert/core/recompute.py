"""Gradient checkpointing: a layer that keeps its input alone, and is computed again for its backward.

Of the activations of L layers those of one are in memory at a time, for one more forward pass. The same
numbers are dropped, as dropout is keyed by its place and not by when it is drawn; so gradients are the same,
bit for bit.
"""

from typing import Any

from .arrays import Array, BoolArray
from .hooks import Watch, unwatched
from .modules.blocks.layer import DropoutSource, TransformerLayer
from .params import Parameters
from .selection import Selection


class Recomputed:
    """A layer's forward that remembers how to repeat itself."""

    def __init__(self, layer: TransformerLayer):
        self.layer = layer

    def forward(self, params: Parameters, x: Array, select: Selection, key_mask: BoolArray | None,
                dropout: DropoutSource, watch: Watch = unwatched) -> tuple[Array, dict[str, Any]]:
        """x (B*T, H) -> y (M, H), one row for each selected token."""
        def run() -> tuple[Array, dict[str, Any]]:
            return self.layer.forward(params, x, select, key_mask, dropout, watch)

        y, _ = run()
        return y, {"x": x, "hidden": y, "_again": lambda: run()[1]}


def recomputed(cache: dict[str, Any]) -> dict[str, Any]:
    """What a layer's backward needs: the cache itself, or that of a repeated forward."""
    again = cache.get("_again")
    return cache if again is None else again()
