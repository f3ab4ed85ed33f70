"""Exercise: the backward of the loss."""

from typing import Any

import numpy as np

from ...core.arrays import Array
from ...core.gradcheck import Check
from ...core.ops.softmax import softmax_forward
from ..compared import BackwardExercise
from ..exercise import Clues, Pieces, Wrong


def _pieces(p: Pieces) -> dict[str, Any]:
    onehot = np.zeros(p.logits.shape)
    onehot[np.arange(len(p.targets)), p.targets] = 1
    return {"p": softmax_forward(p.logits.copy())[0], "onehot": onehot, "rows": p.selected[:, None],
            "M": int(p.selected.sum()), "N": len(p.targets)}


def _result(p: Pieces, difference: Array) -> Array:
    result: Array = p.dy * p.rows * difference / p.M
    return result


EXERCISE = BackwardExercise(
    "cross_entropy", "the loss of masked language modelling", 3, "math/cross_entropy.md",
    hints=("Take one selected row: log sum_v exp(x_v) - x_t. Differentiate its two terms separately.",
           "The slope of log sum_v exp(x_v) in x_v is softmax(x)_v; that of -x_t is -1 at the target and 0 elsewhere.",
           "So the row is (p - onehot(target)), times dloss, divided by the number of selected rows; rows that are "
           "not selected are zero."),
    checks=[
        Check("some rows", lambda rng: [rng.standard_normal((5, 4))], targets=np.array([2, 0, 1, 3, 1]),
              selected=np.array([True, False, True, True, False])),
        Check("all rows", lambda rng: [rng.standard_normal((3, 5))], targets=np.array([0, 4, 4]),
              selected=np.ones(3, bool)),
        Check("one row", lambda rng: [rng.standard_normal((4, 3))], targets=np.array([1, 1, 2, 0]),
              selected=np.array([False, False, True, False])),
    ],
    pieces=_pieces,
    clues=Clues(
        sizes=lambda p: {"the number of selected rows M": p.M, "the number of all rows N": p.N, "dloss": p.dy},
        places=lambda p: {"rows that are not selected": ~p.rows, "the targets' columns": p.onehot > 0},
        wrong=[
            Wrong("dlogits", "It is not divided by the number of selected rows: the loss is a mean.",
                  lambda p: p.dlogits * p.M),
            Wrong("dlogits", "It is divided by the number of selected rows twice.", lambda p: p.dlogits / p.M),
            Wrong("dlogits", "It is divided by the number of all rows; the mean is over the selected rows.",
                  lambda p: p.dlogits * p.M / p.N),
            Wrong("dlogits", "The one-hot target is not subtracted: this is only the softmax.",
                  lambda p: _result(p, p.p)),
            Wrong("dlogits", "The softmax is missing: every logit of a row affects the loss, not only the target's.",
                  lambda p: _result(p, -p.onehot)),
            Wrong("dlogits", "The sign is wrong: it is softmax minus one-hot.", lambda p: -p.dlogits),
            Wrong("dlogits", "Rows that are not selected get a gradient too: they are not in the loss, so they are "
                             "zero.", lambda p: p.dy * (p.p - p.onehot) / p.M),
            Wrong("dlogits", "All rows get a gradient, and all are counted: only the selected rows are in the loss.",
                  lambda p: p.dy * (p.p - p.onehot) / p.N),
            Wrong("dlogits", "dloss is not used: the loss may be part of a larger one, which contributes a factor.",
                  lambda p: p.dlogits / p.dy),
            Wrong("dlogits", "The logits are used instead of their softmax.",
                  lambda p: _result(p, p.logits - p.onehot)),
            Wrong("dlogits", "This has only the selected rows; the result has a row for every row of the logits, "
                             "with zeros for the others.", lambda p: p.dlogits[p.selected]),
        ]))
