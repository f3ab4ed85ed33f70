"""Ranks, and the correlation of ranks."""

import numpy as np

from ..core.arrays import Array


def ranks(x: Array) -> Array:
    """Ranks along the last axis, from 1; equal values share the mean of theirs."""
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
    """The correlation of ranks along the last axis; 0 where one of the two is constant."""
    ra, rb = ranks(a), ranks(b)
    ra -= ra.mean(axis=-1, keepdims=True)
    rb -= rb.mean(axis=-1, keepdims=True)
    below = np.sqrt((ra**2).sum(axis=-1) * (rb**2).sum(axis=-1))
    found: Array = np.divide((ra * rb).sum(axis=-1), below, out=np.zeros(below.shape), where=below > 0)
    return found
