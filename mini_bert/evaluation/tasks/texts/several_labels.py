"""Several labels per text: any number of them may hold, or none.

A table has them as a list (JSON, Parquet), as one cell with a separator between them, | ; or , whichever occurs first
in this order, or as several columns of ones and zeros.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.arrays import Array
from ....core.registry import register
from ....errors import DataError
from ...formats.tables import SEPARATORS, Labelled
from ..encode import EncodedValues
from ..metrics.metric import LabelMetric
from .text_task import TextTask


@register("task", "multilabel")
class SeveralLabels(TextTask):
    """Texts, or pairs of texts, with any number of labels each."""

    loss = "binary_cross_entropy"
    form = EncodedValues
    metric_type = LabelMetric
    usual_metrics = ("micro_f1", "label_macro_f1", "exact_labels")
    without_answer = True
    same_answer = "the frequent labels"

    def _learn_answers(self, records: Sequence[Labelled], source: str) -> None:
        self.separator = separator_of(records)
        self.labels = sorted({label for record in records for label in self._of(record)})
        self.outputs = len(self.labels)
        if not self.labels:
            raise DataError(f"{source} has no labels, so there is nothing to learn.")

    def _of(self, record: Labelled) -> list[str]:
        parts = record.labels or (record.label.split(self.separator) if self.separator else [record.label])
        return [part.strip() for part in parts if part.strip()]

    def _answers(self, records: Sequence[Labelled], source: str) -> list[list[float]]:
        known = set(self.labels)
        rows = []
        for record in records:
            there = self._of(record)
            if unseen := next((label for label in there if label not in known), None):
                raise DataError(f"{source} has the label {unseen!r}, which does not occur in training; that has "
                                f"{', '.join(self.labels[:10])}{' ...' if len(self.labels) > 10 else ''}.")
            rows.append([float(label in there) for label in self.labels])
        return rows

    def _stratum(self, record: Labelled) -> Any:
        return sorted(self._of(record))

    def _constant(self) -> Array:
        means: Array = np.mean(self._answers(self._train, "The data"), axis=0)
        return means


def separator_of(records: Sequence[Labelled]) -> str | None:
    """What stands between the labels of a cell; None if no cell has a separator in it."""
    return next((sign for sign in SEPARATORS if any(sign in record.label for record in records if not record.labels)),
                None)
