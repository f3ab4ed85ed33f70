"""Exercise: the backward of dropout."""

import numpy as np

from ...core.gradcheck import Check
from ..compared import BackwardExercise
from ..exercise import Clues, Pieces, Wrong


def _pieces(p: Pieces) -> dict[str, np.ndarray | float]:
    return {"keep": p.y != 0, "q": 1 - p.rate}


EXERCISE = BackwardExercise(
    "dropout", "dropout", 1, "math/dropout.md",
    hints=("In the backward nothing is random any more: keep and q are constants, and y is x times a fixed array.",
           "y_i = (keep_i / q) x_i, so the slope of y_i in x_i is keep_i / q.",
           "dx is dy times the same array; nothing is drawn again."),
    checks=[Check("half dropped", lambda rng: [rng.standard_normal((4, 5))], rate=0.5, rng=7),
            Check("a fifth dropped", lambda rng: [rng.standard_normal((2, 3, 4))], rate=0.2, rng=8)],
    pieces=_pieces,
    clues=Clues(
        sizes=lambda p: {"1/q": 1 / p.q},
        places=lambda p: {"the elements that were dropped": ~p.keep, "the elements that were kept": p.keep},
        wrong=[
            Wrong("dx", "It is not scaled: kept elements were divided by q in the forward, so their gradient is too.",
                  lambda p: p.dy * p.keep),
            Wrong("dx", "It is scaled twice.", lambda p: p.dy * p.keep / p.q**2),
            Wrong("dx", "It is multiplied by q; it should be divided.", lambda p: p.dy * p.keep * p.q),
            Wrong("dx", "The mask is missing: elements that were dropped do not affect y, so their gradient is zero.",
                  lambda p: p.dy / p.q),
            Wrong("dx", "The mask is inverted: the dropped elements get the gradient.",
                  lambda p: p.dy * ~p.keep / p.q),
            Wrong("dx", "dy is passed on unchanged: neither the mask nor the scale is used.", lambda p: p.dy.copy()),
            Wrong("dx", "It is divided by the rate, the share that is dropped; divide by q, the share that is kept.",
                  lambda p: p.dy * p.keep / p.rate),
        ]))
