"""Ranks, and Spearman's correlation."""

from math import atanh, sqrt, tanh

import numpy as np
import numpy.typing as npt

from ..core.arrays import Array
from ..errors import InputError
from .statistics import Z_95, Interval


def ranks(x: Array) -> Array:
    """Ranks along the last axis, from 1; equal values get the mean of their ranks."""
    n = x.shape[-1]
    order = np.argsort(x, axis=-1, kind="stable")
    ordered = np.take_along_axis(x, order, -1)
    place = np.broadcast_to(np.arange(n), x.shape)
    differs = ordered[..., 1:] != ordered[..., :-1]
    edge = np.ones((*x.shape[:-1], 1), bool)
    first = np.maximum.accumulate(np.where(np.concatenate([edge, differs], -1), place, 0), axis=-1)
    last = np.minimum.accumulate(np.where(np.concatenate([differs, edge], -1), place, n)[..., ::-1], axis=-1)[..., ::-1]
    made = np.empty(x.shape)
    np.put_along_axis(made, order, (first + last) / 2 + 1, -1)
    return made


def spearman(a: Array, b: Array) -> Array:
    """Spearman's correlation along the last axis; 0 where one of the two is constant."""
    ra, rb = ranks(a), ranks(b)
    ra -= ra.mean(axis=-1, keepdims=True)
    rb -= rb.mean(axis=-1, keepdims=True)
    below = np.sqrt((ra**2).sum(axis=-1) * (rb**2).sum(axis=-1))
    found: Array = np.divide((ra * rb).sum(axis=-1), below, out=np.zeros(below.shape), where=below > 0)
    return found


def spearman_interval(a: npt.ArrayLike, b: npt.ArrayLike) -> Interval | None:
    """Spearman's correlation with the interval of Bonett & Wright; None if one of the two is constant."""
    x, y = np.asarray(a), np.asarray(b)
    if x.shape != y.shape:
        raise InputError(f"{len(x)} values cannot be correlated with {len(y)}.")
    if len(x) < 2 or not np.ptp(x) or not np.ptp(y):
        return None
    r = float(np.clip(spearman(x, y), -1, 1))
    if len(x) < 4 or abs(r) == 1:             # too few values, or the formula gives a width of zero
        return Interval(r, None, None, len(x))
    margin = Z_95 * sqrt((1 + r * r / 2) / (len(x) - 3))
    return Interval(r, tanh(atanh(r) - margin), tanh(atanh(r) + margin), len(x))
