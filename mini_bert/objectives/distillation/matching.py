"""How far a student's rows are from the teacher's, summed over rows, and the gradient for the student.

    soft cross-entropy   p = softmax(x / T), q = softmax(z / T)     T^2 sum_v q_v (ln q_v - ln p_v)      dx = T (p - q)
    cosine               1 - y . t / (|y| |t|)                                       dy = (cos y/|y| - t/|t|) / |y|
    squared              sum_h (y_h - t_h)^2 / H                                     dy = 2 (y - t) / H
    similarities         sum_(i != j) (C_ij - K_ij)^2,  C = U U^T                    dU = 4 (C - K) U

each for one row, the last for all of them, times d loss. U are the student's rows at unit length, K the cosines of the
teacher's rows. The teacher's z, t and K are constants. Derivations: docs/math/distillation.md
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.gradcheck import Check
from ..vectors.unit_rows import unit_rows_backward, unit_rows_forward


def soft_cross_entropy_forward(logits: Array, taught: Array, temperature: float = 1.0) -> tuple[float, Any]:
    """logits and the teacher's (N, V) -> T^2 times the divergence of the student's distribution from the teacher's.

    Both are softened by the temperature T. The factor T^2 keeps the gradients as large as those of the labels when T
    changes; it is part of the loss. The loss of a student that has learned everything is zero.
    """
    p, log_p = _softened(logits, temperature)
    q, log_q = _softened(taught, temperature)
    log_q -= log_p
    loss = temperature**2 * float(np.einsum("nv,nv->n", q, log_q).sum(dtype=np.float64))
    return loss, (p, q, temperature)


def soft_cross_entropy_backward(dloss: float, cache: Any) -> Array:
    """dloss, a number -> dlogits (N, V)."""
    p, q, temperature = cache
    dlogits: Array = (dloss * temperature) * (p - q)      # T^2 of the loss, and 1/T of x / T
    return dlogits


def _softened(logits: Array, temperature: float) -> tuple[Array, Array]:
    """softmax(x / T) and its logarithm, in the precision of x."""
    logs = logits / temperature
    logs -= logs.max(axis=1, keepdims=True)
    p = np.exp(logs)
    total = p @ np.ones(p.shape[1], p.dtype)
    p /= total[:, None]
    logs -= np.log(total)[:, None]
    return p, logs


def cosine_forward(rows: Array, taught: Array) -> tuple[float, Any]:
    """rows and the teacher's (N, H) -> the sum of one minus their cosines."""
    y, cache = unit_rows_forward(rows)
    t, _ = unit_rows_forward(taught)
    return float(len(y) - np.einsum("nh,nh->", y, t, dtype=np.float64)), (t, cache)


def cosine_backward(dloss: float, cache: Any) -> Array:
    """dloss, a number -> drows (N, H)."""
    t, unit = cache
    return unit_rows_backward(-dloss * t, unit)


def squared_forward(rows: Array, taught: Array) -> tuple[float, Any]:
    """rows and the teacher's (N, H) -> the sum over rows of the mean squared difference of their features."""
    difference = rows - taught
    return float(np.einsum("nh,nh->", difference, difference, dtype=np.float64)) / rows.shape[1], difference


def squared_backward(dloss: float, difference: Array) -> Array:
    """dloss, a number -> drows (N, H)."""
    drows: Array = (2 * dloss / difference.shape[1]) * difference
    return drows


def similarities_forward(rows: Array, taught: Array) -> tuple[float, Any]:
    """rows (n, H) and the teacher's (n, D), which may be of another width -> the summed squared difference of the
    cosines of all pairs of rows, each pair both ways."""
    u, unit = unit_rows_forward(rows)
    t, _ = unit_rows_forward(taught)
    difference = u @ u.T - t @ t.T
    np.fill_diagonal(difference, 0)                       # every row is parallel to itself
    return float(np.einsum("ij,ij->", difference, difference, dtype=np.float64)), (u, unit, difference)


def similarities_backward(dloss: float, cache: Any) -> Array:
    """dloss, a number -> drows (n, H)."""
    u, unit, difference = cache
    dC = (2 * dloss) * difference
    return unit_rows_backward(2 * (dC @ u), unit)         # C = u u^T: u is used twice, and dC is symmetric


class Distance(NamedTuple):
    """Of a student's rows from the teacher's: (rows, taught) -> summed loss, cache;  (dloss, cache) -> drows."""

    forward: Callable[[Array, Array], tuple[float, Any]]
    backward: Callable[[float, Any], Array]


def softened(temperature: float) -> Distance:
    """The soft cross-entropy at a temperature."""
    return Distance(lambda rows, taught: soft_cross_entropy_forward(rows, taught, temperature),
                    soft_cross_entropy_backward)


DISTANCES: Mapping[str, Distance] = {"cosine": Distance(cosine_forward, cosine_backward),
                                     "squared": Distance(squared_forward, squared_backward)}


def _rows(rng: np.random.Generator) -> list[Array]:
    return [rng.standard_normal((3, 4))]


_TAUGHT = np.random.default_rng(7).standard_normal((3, 4))
CHECKS = {                                                # operation -> (forward, backward, checks)
    "soft cross-entropy": (soft_cross_entropy_forward, soft_cross_entropy_backward,
                           [Check("temperature 1", _rows, taught=_TAUGHT),
                            Check("temperature 3", _rows, taught=5 * _TAUGHT, temperature=3.0)]),
    "cosine": (cosine_forward, cosine_backward, [Check("rows", _rows, taught=_TAUGHT)]),
    "squared": (squared_forward, squared_backward, [Check("rows", _rows, taught=_TAUGHT)]),
    "similarities": (similarities_forward, similarities_backward, [Check("other width", _rows, taught=_TAUGHT[:, :2])]),
}
