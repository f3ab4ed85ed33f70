"""Probabilities, losses and entropies from logits, in float64."""

import numpy as np
import numpy.typing as npt

from ..core.arrays import Array, IntArray

Floats = npt.NDArray[np.float64]


def log_probabilities(logits: Array) -> Floats:
    """ln softmax over the last axis."""
    logs = logits.astype(np.float64)
    logs -= logs.max(axis=-1, keepdims=True)
    logs -= np.log(np.exp(logs).sum(axis=-1, keepdims=True))
    return logs


def probabilities(logits: Array) -> Floats:
    """Softmax over the last axis."""
    p: Floats = np.exp(log_probabilities(logits))
    return p


def target_losses(logits: Array, targets: IntArray) -> Floats:
    """-ln p of one target per row: logits (N, V), targets (N,)."""
    losses: Floats = -log_probabilities(logits)[np.arange(len(targets)), targets]
    return losses


def entropy(p: Array) -> Floats:
    """The entropy of each distribution over the last axis, in nats: ln n if uniform, 0 if certain."""
    wide: Floats = p.astype(np.float64)
    entropy: Floats = -(wide * np.log(np.maximum(wide, np.finfo(np.float64).tiny))).sum(axis=-1)
    return entropy
