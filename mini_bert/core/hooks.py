"""Hooks: see every value of a pass, or replace it.

A forward pass calls `hook(name, value)` with every value that it computes and continues with what the hook returns. A
backward pass calls it under the same name with the gradient of that value. Inside a layer the names end in the
layer's number: Q_0, attention_weights_0, hidden_0.

A hook that returns its values changes no bit of the result, except where attention without a hook works in blocks
(ops/blockwise_attention.py): there it may change the last digits.

The arrays are the pass's own memory and some are overwritten later: copy what you keep.
"""

from collections.abc import Callable, Collection
from typing import TypeVar

from .arrays import Array

Hook = Callable[[str, Array], Array]
Kept = TypeVar("Kept")


def no_hook(name: str, value: Array) -> Array:
    """Leave every value as it is."""
    return value


def recorder(into: dict[str, Kept], keep: Callable[[Array], Kept], names: Collection[str] | None = None) -> Hook:
    """A hook that stores `keep(value)` under each name, or under these `names` alone, and changes nothing."""

    def hook(name: str, value: Array) -> Array:
        if names is None or name in names:
            into[name] = keep(value)
        return value

    return hook


def in_layer(hook: Hook, layer: int) -> Hook:
    """The same hook, with the layer's number behind each name."""
    if hook is no_hook:
        return hook
    return lambda name, value: hook(f"{name}_{layer}", value)
