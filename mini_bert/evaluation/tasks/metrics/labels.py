"""Metrics of several labels per text.

    micro_f1          F1 = 2 TP / (2 TP + FP + FN) over all texts and labels together
    label_macro_f1    the mean over the labels of each one's F1
    exact_labels      the share of texts whose labels are all right
"""

import numpy as np

from ....core.registry import register
from .metric import Bools, LabelMetric


def micro_f1(predicted: Bools, true: Bools) -> float:
    """1 where nothing holds and nothing is predicted."""
    together = int(predicted.sum()) + int(true.sum())
    return 2 * int((predicted & true).sum()) / together if together else 1.0


def label_macro_f1(predicted: Bools, true: Bools) -> float:
    """A label that neither holds nor is predicted anywhere is left out."""
    scores = [micro_f1(predicted[:, c], true[:, c]) for c in range(true.shape[1])
              if predicted[:, c].any() or true[:, c].any()]
    return float(np.mean(scores)) if scores else 1.0


def exact_labels(predicted: Bools, true: Bools) -> float:
    return float((predicted == true).all(axis=1).mean())


for _word, _function in {"micro_f1": micro_f1, "label_macro_f1": label_macro_f1, "exact_labels": exact_labels}.items():
    register("metric", _word)(LabelMetric(_function))
