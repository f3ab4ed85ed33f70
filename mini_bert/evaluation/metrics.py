"""Metrics of predictions: masked accuracy, perplexity, calibration; and the norm of gradients.

    accuracy@k = share of masked positions whose true token is among the k highest logits
    perplexity = exp(mean loss)
    ECE        = sum over bins of (n_bin / n) |accuracy(bin) - mean confidence(bin)|       (Guo et al. 2017)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, inf, isnan, pi, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..core.arrays import Array, BoolArray, IntArray
from ..core.inputs import as_array, check_mask
from ..core.params import Parameters
from ..errors import InputError
from .probabilities import Floats, top_probability
from .result import Result

_AT_A_TIME = 1 << 16          # gradients converted to float64 at a time


class Ranks(NamedTuple):
    """For each masked position: how many tokens score higher than the true one, and how many the same (with itself)."""

    above: npt.NDArray[np.int64]
    equal: npt.NDArray[np.int64]

    def found(self, top: int) -> Floats:
        """Whether the true token is among the first `top`, from 0 to 1: tokens with equal scores share their ranks."""
        return np.clip((top - self.above) / self.equal, 0, 1)


def target_ranks(logits: Array, targets: IntArray) -> Ranks:
    """The ranks of the true tokens (M,) by the logits (M, V)."""
    true = logits[np.arange(len(targets)), targets][:, None]
    return Ranks(np.count_nonzero(logits > true, axis=1), np.count_nonzero(logits == true, axis=1))


def masked_accuracy(logits: Array, targets: IntArray, mask: BoolArray | None = None, top: int = 1) -> float:
    """The share of masked positions whose true token is among the `top` most likely tokens.

    logits (B, T, V) with targets and mask (B, T), the mask nonzero where a token was masked; or only the masked
    positions, logits (M, V) and targets (M,). Ties count in part: a model that gives all tokens the same score gets
    top / V, not 1.
    """
    if isinstance(top, bool) or not isinstance(top, int | np.integer) or top < 1:
        raise InputError(f"top must be an integer of at least 1, not {top}.")
    scores, true = masked_rows(logits, targets, mask)
    return float(target_ranks(scores, true).found(int(top)).mean())


def masked_rows(logits: Array, targets: IntArray, mask: BoolArray | None = None) -> tuple[Array, IntArray]:
    """The masked positions only, logits (M, V) and targets (M,), after checking that they fit together."""
    scores, true = as_array(logits, "logits"), as_array(targets, "targets")
    if scores.ndim < 2 or scores.dtype.kind != "f":
        raise InputError("logits must be floating-point numbers with the vocabulary as the last axis, "
                         f"not {scores.dtype} {scores.shape}.")
    if true.shape != scores.shape[:-1]:
        raise InputError(f"targets has the shape {true.shape}, which does not match logits {scores.shape}.")
    if true.dtype.kind not in "iu":
        raise InputError(f"targets must be integers, not {true.dtype}.")
    if mask is not None:
        selected = check_mask(mask, true.shape, "mask", "targets")
        scores, true = scores[selected], true[selected]
    V = scores.shape[-1]
    scores, true = scores.reshape(-1, V), true.reshape(-1)
    if not len(true):
        raise InputError("There is nothing to measure: no position is masked.")
    if np.isnan(scores.max()):
        raise InputError("logits has NaN at a masked position, so its tokens cannot be ranked.")
    if true.min() < 0 or true.max() >= V:
        raise InputError(f"targets has ids from {true.min()} to {true.max()}; the vocabulary has 0 to {V - 1}.")
    return scores, true


def compute_perplexity(loss: float) -> float:
    """exp of the mean loss in nats; infinite where float64 overflows."""
    if isnan(loss) or loss < 0:
        raise InputError(f"A mean cross-entropy must be a number of at least 0, not {loss}.")
    return exp(loss) if loss < 709 else inf


def compute_gradient_norm(gradients: Parameters | Mapping[str, Array]) -> float:
    """The Euclidean norm of all gradients together, summed in float64; tied parameters count once."""
    if not isinstance(gradients, Mapping) or not len(gradients):
        raise InputError("Gradients are named arrays, such as MiniBERTGradients(model).gradients.")
    arrays = [gradients.flat] if isinstance(gradients, Parameters) else list(gradients.values())
    return sqrt(sum(_squares(np.ravel(array)) for array in arrays))


def _squares(values: Array) -> float:
    """The sum of squares, in float64 piece by piece: float32 overflows at 1e19 squared, and loses small terms."""
    parts = (values[start : start + _AT_A_TIME].astype(np.float64) for start in range(0, len(values), _AT_A_TIME))
    return sum(float(part @ part) for part in parts)


# -------------------------------------------------------------------- calibration


class ReliabilityBin(NamedTuple):
    """Predictions with a confidence above `low` and at most `high`; the means are 0 in an empty bin."""

    low: float
    high: float
    predictions: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class Calibration(Result):
    """How far confidence is from accuracy.

    `error` is the expected calibration error. `error_by_chance` is the error of a perfectly calibrated model with the
    same confidences, which is above zero because bins are finite. `overconfidence` is mean confidence minus accuracy.
    """

    also = ("overconfidence",)

    error: float
    error_by_chance: float
    worst: float                  # the largest gap in a bin
    confidence: float
    accuracy: float
    count: int
    table: list[ReliabilityBin]

    @property
    def overconfidence(self) -> float:
        return self.confidence - self.accuracy


def compute_calibration(confidence: npt.ArrayLike, right: npt.ArrayLike, bins: int = 10) -> Calibration:
    """Compare confidence (N,), the probability of the top prediction, with whether it was right (N,), in equal bins."""
    p, correct = (as_array(values, name).astype(np.float64)
                  for values, name in ((confidence, "confidence"), (right, "right")))
    if p.ndim != 1 or p.shape != correct.shape or not len(p):
        raise InputError(f"confidence and right must have the same length, not {p.shape} and {correct.shape}.")
    if bins < 1:
        raise InputError(f"bins must be at least 1, not {bins}.")
    for values, name in ((p, "confidence"), (correct, "right")):
        if not ((values >= 0) & (values <= 1)).all():
            raise InputError(f"{name} must lie between 0 and 1.")
    number = np.clip(np.ceil(p * bins).astype(np.int64) - 1, 0, bins - 1)
    counts = np.bincount(number, minlength=bins)
    some = np.maximum(counts, 1)
    mean, accuracy, variance = (np.bincount(number, values, bins) / some
                                for values in (p, correct, p * (1 - p)))
    gaps, weights = np.abs(mean - accuracy), counts / len(p)
    # the mean absolute deviation of a normal variable is sqrt(2/pi) of its standard deviation
    chance = float((weights * np.sqrt(2 / pi * variance / some)).sum())
    table = [ReliabilityBin(i / bins, (i + 1) / bins, int(counts[i]), float(mean[i]), float(accuracy[i]))
             for i in range(bins)]
    return Calibration(float((weights * gaps).sum()), chance, float(gaps.max()), float(p.mean()),
                       float(correct.mean()), len(p), table)


def masked_calibration(logits: Array, targets: IntArray, mask: BoolArray | None = None, bins: int = 10) -> Calibration:
    """The calibration of a model's top predictions; arguments as for `masked_accuracy`."""
    scores, true = masked_rows(logits, targets, mask)
    return compute_calibration(top_probability(scores), target_ranks(scores, true).found(1), bins)
