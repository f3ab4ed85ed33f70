"""Exercise: the backward of softmax."""

from ...core.ops.softmax import CHECKS
from ..compared import BackwardExercise
from ..exercise import Clues, Pieces, Wrong

ROW = {"axis": -1, "keepdims": True}


def _term(p: Pieces) -> object:
    return (p.y * p.dy).sum(axis=-1, keepdims=True)


EXERCISE = BackwardExercise(
    "softmax", "softmax over the last axis", 2, "math/softmax.md",
    hints=("Every p_i of a row depends on every x_j of the row, because they share the denominator. So dx_j is a sum "
           "over i, and it needs the slope of p_i in x_j.",
           "That slope is p_i (1 - p_i) for i = j and -p_i p_j otherwise; in one line, p_i (delta_ij - p_j).",
           "Insert it into dx_j = sum_i dp_i p_i (delta_ij - p_j) and factor out p_j: what remains is dp_j minus one "
           "number per row."),
    checks=CHECKS,
    clues=Clues(
        sizes=lambda p: {"the length n of a row": p.x.shape[-1]},
        wrong=[
            Wrong("dx", "The correction term is missing: raising one x lowers the other p of the row, which "
                        "subtracts sum_j p_j dp_j from every element.", lambda p: p.y * p.dy),
            Wrong("dx", "This is only the slope of each p_i in its own x_i, p (1 - p) dp; p_i also depends on the "
                        "other elements of the row.", lambda p: p.y * (1 - p.y) * p.dy),
            Wrong("dx", "The correction is the plain sum of dp; each term must be weighted by its p.",
                  lambda p: p.y * (p.dy - p.dy.sum(**ROW))),
            Wrong("dx", "The correction is the mean of dp; it should be the mean weighted by p, sum_j p_j dp_j.",
                  lambda p: p.y * (p.dy - p.dy.mean(**ROW))),
            Wrong("dx", "The correction is divided by the length of the row; p already sums to 1, so it is a sum.",
                  lambda p: p.y * (p.dy - (p.y * p.dy).mean(**ROW))),
            Wrong("dx", "The correction is summed over the wrong axis: the softmax runs over each row, the last "
                        "axis.", lambda p: p.y * (p.dy - (p.y * p.dy).sum(axis=0, keepdims=True))),
            Wrong("dx", "The correction is summed over the whole array; it is one number per row.",
                  lambda p: p.y * (p.dy - (p.y * p.dy).sum())),
            Wrong("dx", "The factor p before the brackets is missing.", lambda p: p.dy - _term(p)),
            Wrong("dx", "The correction is not multiplied by p: the factor p applies to both terms.",
                  lambda p: p.y * p.dy - _term(p)),
            Wrong("dx", "The correction has the wrong sign: it is subtracted.", lambda p: p.y * (p.dy + _term(p))),
        ]))
