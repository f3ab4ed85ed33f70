"""Exercise: the backward of the rectifier."""

import numpy as np

from ...core.arrays import Array
from ...core.gradcheck import Check
from ..compared import Backward
from ..exercise import Clues, Wrong


def _off_zero(rng: np.random.Generator, *shape: int) -> Array:
    return rng.choice([-1.0, 1.0], shape) * rng.uniform(0.1, 2, shape)


EXERCISE = Backward(
    "relu", "the rectifier", 1, "math/relu.md",
    hints=("Each y depends on its own x alone, so dx_i = dy_i times the slope of max(x, 0) at x_i.",
           "Where x > 0 the function is y = x, with slope one; where x < 0 it is y = 0, with slope zero.",
           "x > 0 is an array of True and False, and multiplying by it keeps dy or makes it zero."),
    # kept a little away from the kink, where a difference would straddle two slopes
    checks=[Check("a matrix", lambda rng: [_off_zero(rng, 4, 5)]),
            Check("three axes", lambda rng: [_off_zero(rng, 2, 3, 2)])],
    clues=Clues(
        places=lambda p: {"the elements where x is negative": p.x < 0, "the elements where x is positive": p.x > 0},
        wrong=[
            Wrong("dx", "dy goes through unchanged: where x was negative y does not move, so nothing comes back.",
                  lambda p: p.dy.copy()),
            Wrong("dx", "The mask is the wrong way round: it lets through what was cut off.",
                  lambda p: p.dy * (p.x < 0)),
            Wrong("dx", "dy is multiplied by y, the value; the slope is one or zero.", lambda p: p.dy * p.y),
            Wrong("dx", "dy is multiplied by x, the value; the slope is one or zero.", lambda p: p.dy * p.x),
            Wrong("dx", "This is the slope alone; it has yet to be multiplied by dy.",
                  lambda p: (p.x > 0).astype(float)),
            Wrong("dx", "The rectifier was applied to dy: what decides is the sign of x, not that of dy.",
                  lambda p: np.maximum(p.dy, 0)),
        ]))
