"""Exercise: the backward of a row lookup."""

import numpy as np

from ...core.arrays import Array
from ...core.gradcheck import Check
from ..compared import BackwardExercise
from ..exercise import Clues, Pieces, Wrong


def _kept(p: Pieces, order: slice) -> Array:
    """dW with only one of the gradients of equal ids, the last one in this order."""
    dW = np.zeros(p.W.shape)
    for n in range(len(p.ids))[order]:
        dW[p.ids[n]] = p.dy[n]
    return dW


def _counts(p: Pieces) -> Array:
    return np.maximum(np.bincount(p.ids, minlength=len(p.W)), 1)[:, None]


EXERCISE = BackwardExercise(
    "embedding", "row lookup and scatter-add", 2, "math/embedding.md",
    hints=("A row of W that no id looks up does not affect y, so its gradient is zero. Start with zeros of W's shape.",
           "A row that is looked up once gets the dy of that position. A row that is looked up at three positions "
           "affects three y: what happens to the three dy?",
           "They add up. NumPy's dW[ids] += dy reads, adds and writes each row once, so equal ids keep only one; "
           "np.add.at(dW, ids, dy) or a loop over n does not."),
    checks=[Check("repeated ids", lambda rng: [rng.standard_normal((5, 3))], ids=np.array([4, 0, 4, 2, 4, 0])),
            Check("all different", lambda rng: [rng.standard_normal((4, 2))], ids=np.array([2, 0, 3])),
            Check("one id", lambda rng: [rng.standard_normal((2, 3))], ids=np.array([1, 1]))],
    clues=Clues(
        places=lambda p: {"ids that occur more than once": np.bincount(p.ids, minlength=len(p.W))[:, None] > 1,
                          "ids that do not occur": np.bincount(p.ids, minlength=len(p.W))[:, None] == 0},
        wrong=[
            Wrong("dW", "For ids that occur more than once only the last is kept: dW[ids] = dy and dW[ids] += dy "
                        "both write each row once. Add for every n.", lambda p: _kept(p, slice(None))),
            Wrong("dW", "For ids that occur more than once only the first is kept. Add for every n.",
                  lambda p: _kept(p, slice(None, None, -1))),
            Wrong("dW", "The gradients of equal ids are averaged; they should add up.", lambda p: p.dW / _counts(p)),
            Wrong("dW", "The sum over equal ids is added once for each occurrence of the id: count every n "
                        "once.", lambda p: p.dW * _counts(p)),
            Wrong("dW", "dW has one row per position, like dy; it should have one per row of the table.",
                  lambda p: p.dy),
            Wrong("dW", "The sum of all dy is added to every row that occurs; each row of dy belongs to its own id.",
                  lambda p: (np.bincount(p.ids, minlength=len(p.W)) > 0)[:, None] * p.dy.sum(axis=0)),
        ]))
