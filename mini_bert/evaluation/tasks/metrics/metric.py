"""The interface of a metric: a number about predictions, higher being better, and the kind of predictions it applies
to.

    register("metric", "accuracy")(ClassMetric(function))         function(predicted, true, number of classes)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from ....core.arrays import Array, IntArray, Targets
from ....core.registry import find, words
from ....errors import ConfigError

Bools = npt.NDArray[np.bool_]


class Metric(Protocol):
    """`of` says what it measures, for a message."""

    of: ClassVar[str]

    def __call__(self, values: Array, truth: Targets) -> float:
        """values (N, C), the probabilities of labels or the predicted numbers, and the right answers."""


@dataclass(frozen=True)
class ClassMetric:
    """Of classes: the right ones are numbers (N,), and the most probable ones are predicted."""

    function: Callable[[IntArray, IntArray, int], float]
    of: ClassVar[str] = "classes"

    def __call__(self, values: Array, truth: Targets) -> float:
        return self.function(values.argmax(axis=1), truth, values.shape[1])


@dataclass(frozen=True)
class LabelMetric:
    """Of several labels: (N, C), predicted from a probability of one half on."""

    function: Callable[[Bools, Bools], float]
    of: ClassVar[str] = "several labels"

    def __call__(self, values: Array, truth: Targets) -> float:
        return self.function(values >= 0.5, truth.astype(bool))


@dataclass(frozen=True)
class NumberMetric:
    """Of numbers (N,), in float64."""

    function: Callable[[npt.NDArray[np.float64], npt.NDArray[np.float64]], float]
    of: ClassVar[str] = "numbers"

    def __call__(self, values: Array, truth: Targets) -> float:
        return self.function(values.astype(np.float64).ravel(), truth.astype(np.float64).ravel())


def metrics_from(usual: Sequence[str], chosen: str | None, kind: type[Metric]) -> dict[str, Metric]:
    """The usual metrics by their words, with the chosen one first; one of another kind is refused."""
    names = list(usual) if chosen is None else list(dict.fromkeys([chosen, *usual]))
    found: dict[str, Metric] = {name: find("metric", name).named for name in names}
    for name, metric in found.items():
        if not isinstance(metric, kind):
            fitting = [word for word in words("metric") if isinstance(find("metric", word).named, kind)]
            raise ConfigError(f"The metric {name} is of {metric.of}, and the task has {kind.of}; choose one of "
                              f"{', '.join(fitting)}.")
    return found
