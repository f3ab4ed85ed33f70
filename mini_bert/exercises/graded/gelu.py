"""Exercise: the backward of GELU."""

from math import pi, sqrt

import numpy as np

from ...core.gradcheck import Check
from ...core.ops.gelu import normal_cdf
from ..compared import BackwardExercise
from ..exercise import Clues, Pieces, Wrong


def _pieces(p: Pieces) -> dict[str, np.ndarray]:
    cdf, bell = normal_cdf(p.x)
    return {"cdf": cdf, "bell": bell}


EXERCISE = BackwardExercise(
    "gelu", "GELU, the exact form", 2, "math/gelu.md",
    hints=("y = x Phi(x) is a product of two functions of x, so its slope has two terms.",
           "The product rule: y' = Phi(x) + x Phi'(x). The derivative of the distribution Phi is its density phi.",
           "phi(x) = exp(-x^2 / 2) / sqrt(2 pi), and dx = dy (Phi(x) + x phi(x))."),
    checks=[Check("near zero", lambda rng: [rng.standard_normal((4, 5))]),
            Check("in the tails", lambda rng: [3 * rng.standard_normal((2, 3, 2))])],
    pieces=_pieces,
    clues=Clues(wrong=[
        Wrong("dx", "The second term is missing: Phi depends on x too, so x phi(x) is part of the slope.",
              lambda p: p.dy * p.cdf),
        Wrong("dx", "The first term is missing: with Phi held constant, y = x Phi has the slope Phi.",
              lambda p: p.dy * p.x * p.bell / sqrt(2 * pi)),
        Wrong("dx", "The density lacks its factor 1 / sqrt(2 pi), so it does not integrate to 1.",
              lambda p: p.dy * (p.cdf + p.x * p.bell)),
        Wrong("dx", "The second term lacks its factor x: in a product, a factor's slope is multiplied by the other "
                    "factor.", lambda p: p.dy * (p.cdf + p.bell / sqrt(2 * pi))),
        Wrong("dx", "The density has exp(-x^2), without the one half in the exponent.",
              lambda p: p.dy * (p.cdf + p.x * np.exp(-p.x**2) / sqrt(2 * pi))),
        Wrong("dx", "The second term has the wrong sign.",
              lambda p: p.dy * (p.cdf - p.x * p.bell / sqrt(2 * pi))),
        Wrong("dx", "This is only the slope; multiply it by dy.", lambda p: p.dx / p.dy),
    ]))
