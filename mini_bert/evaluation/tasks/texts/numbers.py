"""Regression: a number per text, or per pair of texts, such as how similar two sentences are."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ....core.arrays import Array
from ....core.registry import register
from ....errors import DataError
from ...formats.tables import Labelled, is_number
from ..encode import EncodedValues
from ..metrics.metric import NumberMetric
from .text_task import TextTask


@register("task", "regression")
class Numbers(TextTask):
    """Texts, or pairs of texts, with a number each, which is learned in units of its standard deviation."""

    form = EncodedValues
    metric_type = NumberMetric
    usual_metrics: ClassVar[tuple[str, ...]] = ("pearson", "spearman", "r2")
    same_answer = "the mean of all"

    def _learn_answers(self, records: Sequence[Labelled], source: str) -> None:
        values = np.array(self._answers(records, source))
        mean, scale = float(values.mean()), float(values.std())
        if scale == 0:
            raise DataError(f"{source} has only the number {records[0].label}, so there is nothing to learn.")
        self.loss = f"squared_error(mean={mean!r}, scale={scale!r})"
        self.labels, self.outputs = [self.columns.label[0] if self.columns and self.columns.label else "value"], 1

    def _answers(self, records: Sequence[Labelled], source: str) -> list[list[float]]:
        if wrong := next((record.label for record in records if not is_number(record.label)), None):
            raise DataError(f"{source} has the label {wrong[:60]!r}, which is not a number.")
        return [[float(record.label)] for record in records]

    def _stratum(self, record: Labelled) -> Any:
        return float(record.label)

    def _constant(self) -> Array:
        means: Array = np.mean(self._answers(self._train, "The data"), axis=0)
        return means
