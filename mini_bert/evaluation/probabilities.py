"""Probabilities and entropy from logits, in float64. Core computes log-sum-exp; nothing here does it again."""

import numpy as np
import numpy.typing as npt

from ..core.arrays import Array
from ..core.ops.cross_entropy import log_softmax, target_losses

__all__ = ["Floats", "entropy", "log_softmax", "probabilities", "target_losses", "top_probability"]

Floats = npt.NDArray[np.float64]


def probabilities(logits: Array) -> Floats:
    """Softmax over the last axis."""
    p: Floats = np.exp(log_softmax(logits))
    return p


def top_probability(logits: Array) -> Floats:
    """The probability of the most likely token in each row of logits (M, V)."""
    p: Floats = np.exp(-target_losses(logits, logits.argmax(axis=1)))
    return p


def entropy(p: Array) -> Floats:
    """The entropy of each distribution over the last axis in nats: ln n for n equal probabilities, 0 for certainty."""
    exact: Floats = p.astype(np.float64)
    entropy: Floats = -(exact * np.log(np.maximum(exact, np.finfo(np.float64).tiny))).sum(axis=-1)
    return entropy
