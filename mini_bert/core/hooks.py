"""A look into a pass, and a hand in it.

A forward pass shows every value that it computes to `watch(name, value)` and goes on with what that returns, so a
value can be seen, or be replaced to see what depends on it. A backward pass shows under the same name the gradient
of that value. In a layer the names end in the layer's number: Q_0, attention_weights_0, hidden_0.

The arrays are the pass's own memory, and some of it is written on later: copy what is to be kept.
"""

from collections.abc import Callable, Collection
from typing import TypeVar

from .arrays import Array

Watch = Callable[[str, Array], Array]
Kept = TypeVar("Kept")


def unwatched(name: str, value: Array) -> Array:
    """Nobody looks."""
    return value


def recorded(into: dict[str, Kept], keep: Callable[[Array], Kept], names: Collection[str] | None = None) -> Watch:
    """A watch that changes nothing, and puts what `keep` makes of each value, or of those named, in `into`."""

    def watch(name: str, value: Array) -> Array:
        if names is None or name in names:
            into[name] = keep(value)
        return value

    return watch


def in_layer(watch: Watch, layer: int) -> Watch:
    """The same watch, told the layer's number with each name."""
    if watch is unwatched:
        return watch
    return lambda name, value: watch(f"{name}_{layer}", value)
