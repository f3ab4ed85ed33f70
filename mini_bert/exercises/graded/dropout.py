"""Exercise: the backward of dropout."""

import numpy as np

from ...core.gradcheck import Check
from ..compared import Backward
from ..exercise import Clues, Pieces, Wrong


def _pieces(p: Pieces) -> dict[str, np.ndarray | float]:
    return {"keep": p.y != 0, "q": 1 - p.rate}


EXERCISE = Backward(
    "dropout", "dropout", 1, "math/dropout.md",
    hints=("The draw is over when the backward runs: keep and q are constants, and y is x times a fixed array.",
           "y_i = (keep_i / q) x_i, so the slope of y_i in x_i is keep_i / q.",
           "dx is dy times the same array; nothing is drawn again."),
    checks=[Check("half dropped", lambda rng: [rng.standard_normal((4, 5))], rate=0.5, rng=7),
            Check("a fifth dropped", lambda rng: [rng.standard_normal((2, 3, 4))], rate=0.2, rng=8)],
    pieces=_pieces,
    clues=Clues(
        sizes=lambda p: {"1/q": 1 / p.q},
        places=lambda p: {"the elements that were dropped": ~p.keep, "the elements that were kept": p.keep},
        wrong=[
            Wrong("dx", "It is not scaled: what was kept went forward divided by q, and its gradient comes back so.",
                  lambda p: p.dy * p.keep),
            Wrong("dx", "It is scaled twice.", lambda p: p.dy * p.keep / p.q**2),
            Wrong("dx", "It is multiplied by q where it should be divided.", lambda p: p.dy * p.keep * p.q),
            Wrong("dx", "The mask is missing: elements that were dropped had no part in y, and get nothing.",
                  lambda p: p.dy / p.q),
            Wrong("dx", "The mask is the wrong way round: what was dropped gets the gradient.",
                  lambda p: p.dy * ~p.keep / p.q),
            Wrong("dx", "dy goes through unchanged: neither the mask nor the scale is used.", lambda p: p.dy.copy()),
            Wrong("dx", "It is divided by the rate, the share that is dropped, and not by q, the share that is kept.",
                  lambda p: p.dy * p.keep / p.rate),
        ]))
