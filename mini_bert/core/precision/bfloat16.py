"""bfloat16: the upper sixteen bits of a float32, so the same range with eight bits of precision instead of 24.

NumPy has no such type; the halves are uint16. Widening appends sixteen zeros and is exact. Narrowing drops the lower
half of the bits, read as a whole number, and what is added to it before decides how:

    nearest       + 0x7fff, and 1 if the upper half is odd       to the nearest, a tie to the even one
    stochastic    + sixteen random bits                          up with the probability of the part that is dropped

The mean of the second is the number itself, so a sum of many small terms is right on average, where rounding to the
nearest would drop each of them. Derivation: docs/math/bfloat16.md
"""

import numpy as np
import numpy.typing as npt

from ..arrays import Array

Halves = npt.NDArray[np.uint16]
_AT_A_TIME = 1 << 16          # elements, so that the lines below find them in the cache


def widened(halves: Halves) -> Array:
    """float32 with these upper halves."""
    whole = halves.astype(np.uint32)
    whole <<= np.uint32(16)
    return whole.view(np.float32)


def nearest(x: Array) -> Halves:
    """The nearest bfloat16 of each number of a one-dimensional array, ties to even."""
    made = np.empty(x.shape, np.uint16)
    for start in range(0, x.size, _AT_A_TIME):
        bits = np.ascontiguousarray(x[start : start + _AT_A_TIME], np.float32).view(np.uint32)
        odd = bits >> np.uint32(16)
        odd &= np.uint32(1)
        odd += np.uint32(0x7FFF)
        odd += bits
        odd >>= np.uint32(16)
        made[start : start + _AT_A_TIME] = odd
    return made


def stochastic(x: Array, random: Halves, out: Halves) -> None:
    """Round each number of a one-dimensional array up or down by its sixteen random bits. `x` may be overwritten."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    bits += random
    bits >>= np.uint32(16)
    out[...] = bits
