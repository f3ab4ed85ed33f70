"""What every task has: data to train on, to stop by and to measure on, figures, and baselines."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from os import PathLike
from typing import Any, Generic, TypeVar

from ...core.task_model import TaskModel
from ...randomness import generator
from ...training.workers import Workers
from ..formats.named import Place
from ..formats.reading import also_in
from .encode import Encoded

Held = TypeVar("Held")        # a set to measure on, as a task keeps it


class Task(ABC, Generic[Held]):
    """Data of a task, encoded for one model: files, registered names such as hub:NAME, or records that were read.

    Training stops by `dev` and keeps the parameters that are best there. The figures are of `measured`: the test set,
    or `dev` once more where there is none. The first of the figures is the one that training raises.
    """

    head: str
    outputs: int
    labels: list[str]
    pairs: bool = False       # whether its examples are pairs of texts
    train: Encoded
    dev: Held
    measured: Held
    notes: dict[str, Any]     # how many there are, were cut, left out and the like

    @property
    def has_test(self) -> bool:
        return self.measured is not self.dev

    def figures(self, model: TaskModel, team: Workers) -> dict[str, float]:
        """Of the model on the set to measure on."""
        return self._figures(self.measured, model, team)

    def dev_figures(self, model: TaskModel, team: Workers) -> dict[str, float]:
        """Of the model on the set to stop by."""
        return self._figures(self.dev, model, team)

    @abstractmethod
    def _figures(self, held: Held, model: TaskModel, team: Workers) -> dict[str, float]:
        """Of the model on a set."""

    @abstractmethod
    def baselines(self) -> dict[str, float]:
        """The first figure on the set to measure on, as it is without a model of sequences."""

    def reduced(self, share: float, seed: int) -> Encoded:
        """A part of the training data, for learning curves."""
        rng = generator(seed, "share", str(share))
        owners = sorted(set(self.train.owners))
        return self.train.of(set(rng.choice(owners, max(1, round(share * len(owners))), replace=False).tolist()))


def sizes(train: Sequence[Any], dev: Sequence[Any], test: Sequence[Any] | None) -> dict[str, Any]:
    """The notes that each task begins with."""
    return {"train": len(train), "dev": len(dev)} | ({} if test is None else {"test": len(test)})


def shared(train: Sequence[Hashable], dev: Sequence[Hashable], test: Sequence[Hashable] | None) -> dict[str, Any]:
    """Notes on examples that more than one set has; they flatter what remembers them."""
    found = {"of dev, also in train": also_in(train, dev)}
    if test is not None:
        found |= {"of test, also in train": also_in(train, test), "of test, also in dev": also_in(dev, test)}
    return found


def name_of(given: Place | Sequence[Any]) -> str:
    """For a message: the file, or what stands for records that were read."""
    return str(given) if isinstance(given, str | PathLike) else "The data"
