"""Exercise: the backward of the rectifier."""

import numpy as np

from ...core.arrays import Array
from ...core.gradcheck import Check
from ..compared import BackwardExercise
from ..exercise import Clues, Wrong


def _off_zero(rng: np.random.Generator, *shape: int) -> Array:
    return rng.choice([-1.0, 1.0], shape) * rng.uniform(0.1, 2, shape)


EXERCISE = BackwardExercise(
    "relu", "the rectifier", 1, "math/relu.md",
    hints=("Each y depends only on its own x, so dx_i = dy_i times the slope of max(x, 0) at x_i.",
           "Where x > 0 the function is y = x, with slope 1; where x < 0 it is y = 0, with slope 0.",
           "x > 0 is an array of True and False; multiplying dy by it keeps dy or makes it zero."),
    # away from the kink, where finite differences mix two slopes
    checks=[Check("a matrix", lambda rng: [_off_zero(rng, 4, 5)]),
            Check("three axes", lambda rng: [_off_zero(rng, 2, 3, 2)])],
    clues=Clues(
        places=lambda p: {"the elements where x is negative": p.x < 0, "the elements where x is positive": p.x > 0},
        wrong=[
            Wrong("dx", "dy is passed on unchanged: where x is negative y is constant, so the gradient is zero.",
                  lambda p: p.dy.copy()),
            Wrong("dx", "The mask is inverted: it passes the gradient where x is negative.",
                  lambda p: p.dy * (p.x < 0)),
            Wrong("dx", "dy is multiplied by y, the value; the slope is 1 or 0.", lambda p: p.dy * p.y),
            Wrong("dx", "dy is multiplied by x, the value; the slope is 1 or 0.", lambda p: p.dy * p.x),
            Wrong("dx", "This is only the slope; multiply it by dy.",
                  lambda p: (p.x > 0).astype(float)),
            Wrong("dx", "The rectifier is applied to dy: the sign of x decides, not the sign of dy.",
                  lambda p: np.maximum(p.dy, 0)),
        ]))
