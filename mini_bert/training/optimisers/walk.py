"""How an optimiser goes over the flat buffer: in pieces, which the threads share.

Neighbours that are treated alike are cut together into chunks of one size. A parameter that an optimiser steps as a
whole matrix is a piece by itself, which one thread computes. The pieces and their order do not depend on the threads.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ...core.params import Parameters, ParamSpec
from ...workers import Item, Result, Workers


@dataclass(frozen=True)
class Piece:
    """A run of the buffer whose parameters are treated alike."""

    start: int
    stop: int
    group: str                            # whose norms it counts for
    factor: float                         # of the learning rate; 0 for frozen
    decays: bool
    shape: tuple[int, ...] | None = None  # of the parameter, if it is stepped as a whole

    @property
    def place(self) -> slice:
        return slice(self.start, self.stop)

    @property
    def size(self) -> int:
        return self.stop - self.start


def pieces(params: Parameters, factors: Mapping[str, float], groups: Mapping[str, str],
           whole: Callable[[ParamSpec], bool]) -> list[Piece]:
    """The whole buffer, neighbours that are treated alike as one; a parameter that is `whole` has its shape."""
    for name in factors:
        params[name]                      # an unknown name is answered with the nearest
    return list(_merged(
        Piece(place.start, place.stop, groups.get(name, "all"), factors.get(name, 1.0), decays=params[name].ndim > 1,
              shape=params[name].shape if whole(params.specs[name]) else None)
        for name, place in params.slices.items()))


def _merged(some: Iterator[Piece]) -> Iterator[Piece]:
    current: Piece | None = None
    for piece in some:
        if current is not None and replace(current, start=piece.start, stop=piece.stop) == piece \
                and piece.shape is None:
            current = replace(current, stop=piece.stop)
            continue
        if current is not None:
            yield current
        current = piece
    if current is not None:
        yield current


def chunks(some: list[Piece], size: int) -> list[Piece]:
    """The pieces cut into parts of at most this many numbers, none of them whole any more."""
    return [replace(piece, start=start, stop=min(start + size, piece.stop), shape=None)
            for piece in some for start in range(piece.start, piece.stop, size)]


def shares(some: list[Piece], n: int) -> list[list[Piece]]:
    """The pieces in n runs of about equal length in numbers."""
    if not some:
        return []
    ends = np.cumsum([piece.size for piece in some])
    cuts = [0, *np.searchsorted(ends, ends[-1] * np.arange(1, n) / n).tolist(), len(some)]
    return [some[a:b] for a, b in pairwise(cuts) if a < b]


def spread(workers: Workers | None, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """The results for all items, in their order, computed by all threads where there are any."""
    return workers.map(function, items) if workers is not None else [function(item) for item in items]
