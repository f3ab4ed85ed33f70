"""Text classification: one label per text, or per pair of texts."""

from collections import Counter
from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np

from ....core.arrays import Array
from ....core.registry import register
from ....errors import DataError
from ...formats.tables import Labelled
from ..encode import label_numbers
from ..metrics.metric import ClassMetric
from .text_task import TextTask


@register("task", "sst2")
@register("task", "classification")
class Classification(TextTask):
    """Texts, or pairs of texts, with one label each."""

    metric_type = ClassMetric
    usual_metrics = ("accuracy", "macro_f1")
    same_answer = "majority"

    def texts(self) -> Sequence[Labelled]:
        return self._train

    def _learn_answers(self, records: Sequence[Labelled], source: str) -> None:
        require_classes(records, source)
        self.labels = sorted({record.label for record in records})
        self.outputs = len(self.labels)
        if self.outputs < 2:
            raise DataError(f"{source} has only the label {self.labels[0]!r}, so there is nothing to learn.")

    def _answers(self, records: Sequence[Labelled], source: str) -> list[list[float]]:
        return [[number] for number in label_numbers([record.label for record in records], self.labels, source)]

    def _stratum(self, record: Labelled) -> Any:
        return record.label

    def _constant(self) -> Array:
        most = Counter(record.label for record in self._train).most_common(1)[0][0]
        return np.array([float(label == most) for label in self.labels])


@register("task", "pair")
class Pairs(Classification):
    """Pairs of texts; single texts are refused."""

    def _learn_answers(self, records: Sequence[Labelled], source: str) -> None:
        super()._learn_answers(records, source)
        if records[0].pair is None:
            raise DataError(f"{source} has single texts; the task pair needs two columns of text, such as sentence1 "
                            "and sentence2.")


def require_classes(records: Sequence[Labelled], source: str) -> None:
    """Refuse labels that are fractional numbers: each of them would be a class of its own."""
    try:
        numbers = {record.label: float(record.label) for record in records}
    except ValueError:
        return
    between = next((label for label, value in numbers.items() if not isfinite(value) or value != int(value)), None)
    if between is not None:
        raise DataError(f"{source} has the label {between}, a number on a scale; classes look like 0 and 1. For "
                        "numbers use --task regression.")
