"""Probabilities, losses and entropy from logits, in float64. Log-sum-exp is computed here and nowhere else.

    log_sum_exp(z) = m + ln sum_k exp(z_k - m)        m = max_k z_k
    ln softmax(z)  = z - log_sum_exp(z)
"""

import numpy as np
import numpy.typing as npt

from ..core.arrays import Array, IntArray

Floats = npt.NDArray[np.float64]


def log_sum_exp(logits: Array) -> Floats:
    """ln of the sum of exp over the last axis; the powers in the precision of the logits, their sum in float64."""
    top = logits.max(axis=-1)
    total = np.exp(logits - top[..., None]).sum(axis=-1, dtype=np.float64)
    result: Floats = np.log(total) + top
    return result


def log_probabilities(logits: Array) -> Floats:
    """ln softmax over the last axis."""
    logs = logits.astype(np.float64)
    logs -= log_sum_exp(logs)[..., None]
    return logs


def probabilities(logits: Array) -> Floats:
    """Softmax over the last axis."""
    p: Floats = np.exp(log_probabilities(logits))
    return p


def top_probability(logits: Array) -> Floats:
    """The probability of the most likely token in each row of logits (M, V)."""
    p: Floats = np.exp(logits.max(axis=-1) - log_sum_exp(logits))
    return p


def target_losses(logits: Array, targets: IntArray) -> Floats:
    """-ln p of one id for each row: logits (N, V), targets (N,)."""
    losses: Floats = log_sum_exp(logits) - logits[np.arange(len(targets)), targets]
    return losses


def entropy(p: Array) -> Floats:
    """The entropy of each distribution over the last axis in nats: ln n for n equal probabilities, 0 for certainty."""
    exact: Floats = p.astype(np.float64)
    entropy: Floats = -(exact * np.log(np.maximum(exact, np.finfo(np.float64).tiny))).sum(axis=-1)
    return entropy
