"""Samples of data that depend on the seed only, so that every model gets the same items."""

from collections.abc import Hashable, Sequence
from typing import Any, TypeVar

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


def set_aside(groups: Sequence[Hashable], strata: Sequence[Any], share: float, seed: int, *purpose: str) -> list[int]:
    """The numbers of about this share of the items, to measure on while the others are learned from.

    The items are put in the order of their strata (their labels, or numbers), by chance within one, and taken at equal
    distances: each stratum has the share that it has of all. Items of one group, such as equal texts, stay together,
    unless there are too few groups to set one aside.
    """
    if len(groups) < 2:
        raise InputError("There are fewer than two examples, so none can be set aside to measure on.")
    if len(set(groups)) * share < 1:
        groups = range(len(groups))
    first: dict[Hashable, int] = {}
    for number, group in enumerate(groups):
        first.setdefault(group, number)
    rng = generator(seed, *purpose)
    draws = rng.random(len(first)).tolist()
    order = [group for *_, group in sorted((strata[number], draw, at, group) for at, ((group, number), draw)
                                           in enumerate(zip(first.items(), draws, strict=True)))]
    count = max(1, round(share * len(order)))
    start = float(rng.random())
    chosen = {order[int((start + i) * len(order) / count)] for i in range(count)}
    return [number for number, group in enumerate(groups) if group in chosen]
