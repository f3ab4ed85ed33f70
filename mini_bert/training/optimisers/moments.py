"""How the moments of an optimiser are stored between two steps: in the precision of the parameters, or as bfloat16.

A step computes with the same arithmetic either way. As bfloat16 the moments are widened before it, and behind it
rounded at random, so that they are right on average: v <- 0.999 v + g^2 changes v by a thousandth, and rounding to the
nearest number of eight bits would leave it as it was. The random bits are keyed by the step and by the place in the
buffer, so neither threads nor an interruption change them. Derivation: docs/math/bfloat16.md

Averages of weights (`lookahead`, `ema`) are no moments, and keep the precision of the parameters.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from ...core.arrays import Array
from ...core.precision.bfloat16 import Halves, stochastic, widened
from ...core.registry import register
from ...randomness import generator

Stored = npt.NDArray[Any]     # of the parameters' kind, or halves of it
_LANES = 4                    # draws of sixteen bits in one of the generator's 64


class Moments(Protocol):
    """A word in the slot `moments` names a class of this kind, made without arguments."""

    itemsize: ClassVar[int | None]        # bytes of a number; None for that of a parameter

    def zeros(self, like: Array) -> Array:
        """A state array for the parameters `like`."""

    def opened(self, stored: Sequence[Stored]) -> list[Array]:
        """Arrays to compute with, from the same part of all state arrays."""

    def close(self, stored: Sequence[Stored], opened: Sequence[Array], step: int, start: int) -> None:
        """Put the new values of `opened` back; the part begins at `start` of the buffer, and this is step `step`."""


@register("moments", "float32")
class FullMoments:
    """As the parameters are, which are float32 in training."""

    itemsize: ClassVar[int | None] = None

    def zeros(self, like: Array) -> Array:
        return np.zeros(like.shape, like.dtype)           # memory that is untouched until the first step

    def opened(self, stored: Sequence[Stored]) -> list[Array]:
        return list(stored)               # changed in place

    def close(self, stored: Sequence[Stored], opened: Sequence[Array], step: int, start: int) -> None:
        return None


@register("moments", "bfloat16")
class BFloat16Moments:
    """Half the memory, for about twice the time of the optimiser's step."""

    itemsize: ClassVar[int | None] = 2

    def zeros(self, like: Array) -> Array:
        return np.zeros(like.shape, np.uint16)

    def opened(self, stored: Sequence[Stored]) -> list[Array]:
        return [widened(halves) for halves in stored]

    def close(self, stored: Sequence[Stored], opened: Sequence[Array], step: int, start: int) -> None:
        if not stored:
            return
        size = stored[0].size
        draws = random_halves(step, start, size + len(stored) - 1)
        for number, (halves, values) in enumerate(zip(stored, opened, strict=True)):
            stochastic(values, draws[number : number + size], halves)     # each state a place further: other draws


def random_halves(step: int, start: int, size: int) -> Halves:
    """Sixteen random bits for each place of the buffer from `start` on, in this step."""
    rng = generator(0, "moments", step)
    rng.bit_generator.advance(start // _LANES)            # type: ignore[attr-defined]   # straight to the place
    words = rng.integers(0, 2**64, (start % _LANES + size - 1) // _LANES + 1, np.uint64)
    return words.view(np.uint16)[start % _LANES :][:size]
