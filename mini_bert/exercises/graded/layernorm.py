"""Exercise: the backward of LayerNorm."""

from typing import Any

import numpy as np

from ...core.ops.layernorm import CHECKS
from ..compared import BackwardExercise
from ..exercise import Clues, Pieces, Wrong


def _pieces(p: Pieces) -> dict[str, Any]:
    mu = p.x.mean(axis=1, keepdims=True)
    r = 1 / np.sqrt(((p.x - mu) ** 2).mean(axis=1, keepdims=True) + p.eps)
    xhat, dxhat = (p.x - mu) * r, p.dy * p.gamma
    return {"xhat": xhat, "r": r, "dxhat": dxhat, "common": dxhat.mean(axis=1, keepdims=True),
            "along": xhat * (dxhat * xhat).mean(axis=1, keepdims=True)}


EXERCISE = BackwardExercise(
    "layernorm", "layer normalisation", 4, "math/layernorm.md",
    hints=("Start at the end: y = gamma xhat + beta is element-wise. gamma and beta are shared by all rows, so their "
           "gradients are sums over the rows; dxhat = gamma dy.",
           "x affects xhat in three ways: directly, through mu, and through var. Each gives a term of dx, and mu and "
           "var depend on every element of the row.",
           "The slope of xhat_i in x_j is r (delta_ij - 1/H - xhat_i xhat_j / H). Summed over i with dxhat_i, the "
           "second and the third term become two means over the row."),
    checks=CHECKS,
    pieces=_pieces,
    clues=Clues(
        sizes=lambda p: {"the number of rows N": len(p.x), "the number of features H": p.x.shape[1]},
        wrong=[
            Wrong("dx", "The second and third terms are missing: mu and var depend on every x of the row, and have "
                        "gradients too.", lambda p: p.r * p.dxhat),
            Wrong("dx", "The second term is missing, the gradient through mu: the mean of dxhat over the row.",
                  lambda p: p.r * (p.dxhat - p.along)),
            Wrong("dx", "The third term is missing, the gradient through var: xhat times the mean of dxhat xhat.",
                  lambda p: p.r * (p.dxhat - p.common)),
            Wrong("dx", "gamma is forgotten: dxhat = gamma dy comes before the three terms.",
                  lambda p: p.r * (p.dy - p.dy.mean(axis=1, keepdims=True)
                                   - p.xhat * (p.dy * p.xhat).mean(axis=1, keepdims=True))),
            Wrong("dx", "The factor r is forgotten: xhat = (x - mu) r.", lambda p: p.dx / p.r),
            Wrong("dx", "It is divided by r where it should be multiplied.", lambda p: p.dx / p.r**2),
            Wrong("dx", "The means are sums here: divide both correction terms by H.",
                  lambda p: p.r * (p.dxhat - p.x.shape[1] * (p.common + p.along))),
            Wrong("dx", "The third term lacks its factor xhat: a change of var changes each xhat_i in proportion to "
                        "itself.", lambda p: p.r * (p.dxhat - p.common - (p.dxhat * p.xhat).mean(axis=1,
                                                                                                 keepdims=True))),
            Wrong("dx", "The means are taken over the rows of the batch; each row is normalised separately.",
                  lambda p: p.r * (p.dxhat - p.dxhat.mean(axis=0) - p.xhat * (p.dxhat * p.xhat).mean(axis=0))),
            Wrong("dgamma", "dgamma lacks the sum over the rows: all rows share one gamma.", lambda p: p.dy * p.xhat),
            Wrong("dgamma", "dgamma uses x where xhat belongs: gamma multiplies the normalised row.",
                  lambda p: (p.dy * p.x).sum(axis=0)),
            Wrong("dgamma", "dgamma uses y where xhat belongs: gamma multiplies the normalised row.",
                  lambda p: (p.dy * p.y).sum(axis=0)),
            Wrong("dgamma", "dgamma is averaged over the rows; the contributions of the rows add up.",
                  lambda p: (p.dy * p.xhat).mean(axis=0)),
            Wrong("dgamma", "dgamma is summed over the features, not over the rows.",
                  lambda p: (p.dy * p.xhat).sum(axis=1)),
            Wrong("dbeta", "dbeta lacks the sum over the rows: the same beta is added to all of them.", lambda p: p.dy),
            Wrong("dbeta", "dbeta is averaged over the rows; the contributions of the rows add up.",
                  lambda p: p.dy.mean(axis=0)),
            Wrong("dbeta", "dbeta is summed over the features, not over the rows.", lambda p: p.dy.sum(axis=1)),
        ]))
