"""Samples of data, drawn by a seed: the same items for every model, in their order."""

from collections.abc import Sequence
from typing import TypeVar

from ..errors import InputError
from ..randomness import generator

Item = TypeVar("Item")


def sampled(items: Sequence[Item], most: int | None, seed: int, *purpose: str) -> list[Item]:
    """At most so many of the items, in their order; all of them for None. `purpose` says what they are drawn for."""
    if most is not None and most < 1:
        raise InputError(f"max_samples must be at least 1, not {most}.")
    if most is None or most >= len(items):
        return list(items)
    chosen = generator(seed, *purpose).choice(len(items), most, replace=False)
    return [items[i] for i in sorted(chosen.tolist())]
