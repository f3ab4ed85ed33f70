"""Metrics of classes.

    accuracy    the share of right answers
    macro_f1    the mean over the classes of F1 = 2 TP / (2 TP + FP + FN)
    f1          F1 of the last class in order, which is the positive one of two such as 0 and 1
    mcc         Matthews' correlation coefficient: the correlation of predicted and right classes, from -1 to 1
                  (c n - sum_k p_k t_k) / sqrt((n^2 - sum_k p_k^2) (n^2 - sum_k t_k^2))
                  c right of n, class k predicted p_k times and right t_k times (Gorodkin 2004)
"""

import numpy as np

from ....core.arrays import IntArray
from ....core.registry import register
from .metric import ClassMetric


def accuracy(predicted: IntArray, true: IntArray, classes: int) -> float:
    return float((predicted == true).mean())


def macro_f1(predicted: IntArray, true: IntArray, classes: int) -> float:
    """A class that neither occurs nor is predicted is left out."""
    scores = [_f1(predicted == k, true == k) for k in range(classes) if (predicted == k).any() or (true == k).any()]
    return float(np.mean(scores)) if scores else 0.0


def f1(predicted: IntArray, true: IntArray, classes: int) -> float:
    return _f1(predicted == classes - 1, true == classes - 1)


def mcc(predicted: IntArray, true: IntArray, classes: int) -> float:
    """0 where one class is predicted, or right, throughout."""
    n, right = len(true), int((predicted == true).sum())
    p, t = (np.bincount(chosen, minlength=classes).astype(np.float64) for chosen in (predicted, true))
    spread = (n * n - p @ p) * (n * n - t @ t)
    return float((right * n - p @ t) / np.sqrt(spread)) if spread > 0 else 0.0


def _f1(predicted: "np.ndarray[tuple[int], np.dtype[np.bool_]]",
        true: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> float:
    together = int(predicted.sum()) + int(true.sum())
    return 2 * int((predicted & true).sum()) / together if together else 0.0


for _word, _function in {"accuracy": accuracy, "macro_f1": macro_f1, "f1": f1, "mcc": mcc}.items():
    register("metric", _word)(ClassMetric(_function))
