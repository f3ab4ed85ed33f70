"""Exercise: the backward of attention."""

from math import sqrt
from typing import Any

import numpy as np

from ...core.arrays import Array
from ...core.gradcheck import Check
from ...core.ops.attention import attention_forward
from ...core.ops.softmax import softmax_backward
from ..compared import BackwardExercise
from ..exercise import Clues, Pieces, Wrong


def _t(x: Array) -> Array:
    return x.transpose(0, 1, 3, 2)


def _pieces(p: Pieces) -> dict[str, Any]:
    P = attention_forward(p.Q, p.K, p.V, p.key_mask)[1].weights
    dP = p.dy @ _t(p.V)
    return {"P": P, "dP": dP, "dS": softmax_backward(dP, P), "root": sqrt(p.Q.shape[3])}


def _from_scores(p: Pieces, dS: Array) -> tuple[Array, Array]:
    """dQ and dK from a correct or wrong dS."""
    return dS @ p.K / p.root, _t(dS) @ p.Q / p.root


_FULL = np.ones((2, 3), bool)
_PADDED = np.array([[True, True, True, False], [True, True, False, False]])
EXERCISE = BackwardExercise(
    "attention", "scaled dot-product attention", 4, "math/attention.md",
    hints=("Go backwards step by step: first C = P V, a linear map of each query's row; then the softmax; then "
           "S = Q K^T / sqrt(d_k).",
           "C = P V gives dV = P^T dC and dP = dC V^T. Then dS is the softmax's backward of dP.",
           "S = Q K^T / sqrt(d_k) is a product of two variables: dQ = dS K / sqrt(d_k) and "
           "dK = dS^T Q / sqrt(d_k). A masked key has P = 0, so its dS is zero."),
    checks=[Check("no padding", lambda rng: list(rng.standard_normal((3, 2, 2, 3, 4))), key_mask=_FULL),
            Check("padding", lambda rng: list(rng.standard_normal((3, 2, 1, 4, 3))), key_mask=_PADDED),
            Check("d_k = T", lambda rng: list(rng.standard_normal((3, 2, 2, 3, 3))), key_mask=_FULL)],
    pieces=_pieces,
    clues=Clues(
        sizes=lambda p: {"sqrt(d_k)": p.root, "d_k": p.root**2, "the number of tokens T": p.Q.shape[2]},
        places=lambda p: {"padded keys": ~p.key_mask[:, None, :, None]},
        wrong=[
            Wrong("dQ", "dQ lacks the factor 1 / sqrt(d_k) of the scores.", lambda p: p.dQ * p.root),
            Wrong("dK", "dK lacks the factor 1 / sqrt(d_k) of the scores.", lambda p: p.dK * p.root),
            Wrong("dQ dK", "The factor 1 / sqrt(d_k) is applied twice: once in dS and again in dQ and dK.",
                  lambda p: (p.dQ / p.root, p.dK / p.root)),
            Wrong("dQ dK", "The softmax's correction term is missing: dS is P dP minus P times the row's sum of P dP.",
                  lambda p: _from_scores(p, p.P * p.dP)),
            Wrong("dQ dK", "The softmax's backward is missing: dP is used as dS.", lambda p: _from_scores(p, p.dP)),
            Wrong("dQ dK", "The softmax's backward runs over the queries; the softmax ran over the keys.",
                  lambda p: _from_scores(p, _t(softmax_backward(_t(p.dP), _t(p.P))))),
            Wrong("dK", "dK uses dS where its transpose belongs: a key sums over the queries that attend to it.",
                  lambda p: p.dS @ p.Q / p.root),
            Wrong("dQ", "dQ uses dS transposed: a query sums over the keys that it attends to.",
                  lambda p: _t(p.dS) @ p.K / p.root),
            Wrong("dQ dK", "dQ and dK are swapped: dQ = dS K and dK = dS^T Q.", lambda p: (p.dK, p.dQ)),
            Wrong("dK", "dK uses K; in S = Q K^T the other factor is Q.",
                  lambda p: _t(p.dS) @ p.K / p.root),
            Wrong("dQ", "dQ uses Q; in S = Q K^T the other factor is K.", lambda p: p.dS @ p.Q / p.root),
            Wrong("dV", "dV uses P where its transpose belongs: a value sums over the queries that use it.",
                  lambda p: p.P @ p.dy),
            Wrong("dV", "dV uses the gradient dS of the scores; C = P V is linear in V with the factor P.",
                  lambda p: _t(p.dS) @ p.dy),
            Wrong("dV", "dV is dC itself: each value goes to every query with the weight P.", lambda p: p.dy.copy()),
        ]))
