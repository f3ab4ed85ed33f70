"""The protocol of a task's loss: one word for what is learned from a head's scores and for how they are read.

A head maps hidden rows to scores (N, C). Whether these are log-odds of classes, of labels that hold independently, or
numbers, only the loss knows: it compares them with the right answers, and turns them into predictions.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...arrays import Array, Targets


class Reading(NamedTuple):
    """A prediction for a person: what is shown, its probability if it has one, and the figures behind it."""

    shown: str
    probability: float | None
    figures: dict[str, float]


class ScoreLoss(ABC):
    """`figures` says what the numbers of `values` are."""

    figures: ClassVar[str]

    @abstractmethod
    def forward(self, scores: Array, targets: Targets) -> tuple[float, Any]:
        """scores (N, C) and the right answers -> the loss, summed over as many terms as `targets` has."""

    @abstractmethod
    def backward(self, dloss: float, cache: Any) -> Array:
        """dloss, a number -> dscores (N, C)."""

    @abstractmethod
    def values(self, scores: Array) -> Array:
        """scores (N, C) -> the probabilities of the labels, or the predicted numbers (N, C)."""

    @abstractmethod
    def reading(self, values: Array, labels: Sequence[str]) -> Reading:
        """One row of `values` (C,) in words."""

    def example_targets(self, classes: Targets, outputs: int, rng: np.random.Generator) -> Targets:
        """Right answers, drawn at random, for a gradient check; `classes` are those of a head that chooses."""
        return classes
