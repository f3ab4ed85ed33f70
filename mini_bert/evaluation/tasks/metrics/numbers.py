"""Metrics of numbers.

    pearson     the correlation of predicted and right numbers: how nearly they lie on a line
    spearman    the correlation of their ranks: how nearly they are in the same order
    r2          1 - mean squared error / variance: 0 for the mean of all answers, 1 for right ones
"""

import numpy as np
import numpy.typing as npt

from ....core.registry import register
from ...ranking import spearman as rank_correlation
from .metric import NumberMetric

Numbers = npt.NDArray[np.float64]


def pearson(predicted: Numbers, true: Numbers) -> float:
    """0 where one of them is constant."""
    if not np.ptp(predicted) or not np.ptp(true):
        return 0.0
    x, y = predicted - predicted.mean(), true - true.mean()
    return float(x @ y / np.sqrt((x @ x) * (y @ y)))


def spearman(predicted: Numbers, true: Numbers) -> float:
    return float(rank_correlation(predicted, true))


def r2(predicted: Numbers, true: Numbers) -> float:
    """0 if all right numbers are the same."""
    spread = float(((true - true.mean()) ** 2).sum())
    return 1 - float(((predicted - true) ** 2).sum()) / spread if spread > 0 else 0.0


for _word, _function in {"pearson": pearson, "spearman": spearman, "r2": r2}.items():
    register("metric", _word)(NumberMetric(_function))
