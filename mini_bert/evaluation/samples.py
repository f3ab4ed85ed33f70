"""Samples of data that depend on the seed only, so that every model gets the same items."""

from collections.abc import Sequence
from typing import TypeVar

from ..errors import InputError
from ..randomness import generator

Item = TypeVar("Item")


def sampled(items: Sequence[Item], most: int | None, seed: int, *purpose: str) -> list[Item]:
    """At most `most` of the items, in their order; all for None. Draws for different purposes are independent."""
    if most is not None and most < 1:
        raise InputError(f"max_samples must be at least 1, not {most}.")
    if most is None or most >= len(items):
        return list(items)
    chosen = generator(seed, *purpose).choice(len(items), most, replace=False)
    return [items[i] for i in sorted(chosen.tolist())]
