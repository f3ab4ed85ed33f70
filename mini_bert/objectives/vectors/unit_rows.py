"""Rows of unit length, and sentence vectors: the mean of a sentence's hidden rows.

    y = x / |x|          dx = (dy - y (y . dy)) / |x|                     derivation: docs/math/contrastive.md

A vector's length says nothing about the direction it points in, so the gradient has no part along y.
"""

from typing import Any, NamedTuple

import numpy as np

from ...core.arrays import Array, BoolArray, IntArray
from ...core.cache import Cache
from ...core.gradcheck import Check
from ...core.model import MiniBERT
from ...core.modules.heads.sequence_tasks import mean_backward, mean_forward
from ...core.params import Gradients

_SHORTEST = 1e-12             # a row of zeros stays one


def unit_rows_forward(x: Array) -> tuple[Array, tuple[Array, Array]]:
    """x (N, H) -> y (N, H), each row of length 1."""
    length = np.maximum(np.sqrt(np.einsum("nh,nh->n", x, x)), _SHORTEST)[:, None]
    y = x / length
    return y, (y, length)


def unit_rows_backward(dy: Array, cache: tuple[Array, Array]) -> Array:
    """dy (N, H) -> dx (N, H)."""
    y, length = cache
    along = np.einsum("nh,nh->n", y, dy)[:, None]
    dx: Array = (dy - along * y) / length
    return dx


class Pooled(NamedTuple):
    """What a backward from sentence vectors needs."""

    cache: Cache
    counts: IntArray


def pool_forward(model: MiniBERT, ids: IntArray, mask: BoolArray, **options: Any) -> tuple[Array, Pooled]:
    """Sentences (B, T) -> their vectors (B, H), the means over their real tokens, not of unit length."""
    hidden, cache = model.encode(ids, mask, positions=mask, **options)           # (M, H)
    counts: IntArray = mask.sum(axis=1)
    return mean_forward(hidden, counts), Pooled(cache, counts)


def pool_backward(dvectors: Array, pooled: Pooled, model: MiniBERT, grads: Gradients, *, last: bool = True) -> None:
    """dvectors (B, H): adds every parameter's gradient to `grads`."""
    model.encode_backward(mean_backward(dvectors, pooled.counts), pooled.cache, grads, forget=True, last=last)


CHECKS = {"unit rows": (unit_rows_forward, unit_rows_backward,
                        [Check("rows", lambda rng: [rng.standard_normal((3, 4))]),
                         Check("long rows", lambda rng: [20 * rng.standard_normal((2, 5))])])}
