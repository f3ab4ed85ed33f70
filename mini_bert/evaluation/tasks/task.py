"""The interface of a task: training, development and test data, metrics, and baselines."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from functools import cached_property
from os import PathLike
from typing import Any, Generic, TypeVar

from ...core.modules.heads.tasks import Answers
from ...core.task_model import TaskModel
from ...errors import ConfigError
from ...randomness import generator
from ...workers import Workers
from ..formats.named import DataSource
from ..formats.reading import count_overlap
from ..formats.tables import Columns, Labelled
from .encode import Encoded

EvalSet = TypeVar("EvalSet")  # an encoded development or test set
DEV_SHARE = 0.1               # of the training data, if no development set is given


class Task(ABC, Generic[EvalSet]):
    """The data of a task, encoded for one model, from files, registered names such as hub:NAME, or records.

    Training stops by `dev` and keeps the parameters that are best there. Results are measured on `measured`: the test
    set, or `dev` if there is none. The first metric is the main one.
    """

    head: str                 # the word of its usual head
    answers: Answers          # what a head must choose to learn it
    outputs: int
    labels: list[str]
    loss: str = "cross_entropy"           # the word of what its scores are learned from
    pairs: bool = False       # its examples are pairs of texts
    columns: Columns | None = None        # of a table, that its examples were read from
    train: Encoded
    dev: EvalSet
    measured: EvalSet
    notes: dict[str, Any]     # numbers of examples, of those that were cut or left out, and so on

    @cached_property
    def said(self) -> list[str]:
        """Sentences about what was read, and how."""
        return []

    @property
    def has_test(self) -> bool:
        return self.measured is not self.dev

    def figures(self, model: TaskModel, team: Workers) -> dict[str, float]:
        """The metrics of a model on the set to measure on."""
        return self._figures(self.measured, model, team)

    def dev_figures(self, model: TaskModel, team: Workers) -> dict[str, float]:
        """The metrics of a model on the development set."""
        return self._figures(self.dev, model, team)

    @abstractmethod
    def _figures(self, data: EvalSet, model: TaskModel, team: Workers) -> dict[str, float]:
        """The metrics of a model on a set."""

    @abstractmethod
    def baselines(self) -> dict[str, float]:
        """The main metric of simple baselines on the set to measure on."""

    def texts(self) -> Sequence[Labelled]:
        """The training examples as texts, for a teacher that has another tokenizer; only of tasks with one class per
        text, whose scores of two models can be compared."""
        raise _no_teacher()

    def encoded(self, records: Sequence[Labelled]) -> Encoded:
        """Other texts, as those of `texts` are encoded for the model, without labels; of the same tasks."""
        raise _no_teacher()

    def reduced(self, share: float, seed: int) -> Encoded:
        """A random share of the training data, for learning curves."""
        rng = generator(seed, "share", str(share))
        owners = sorted(set(self.train.owners))
        return self.train.of(set(rng.choice(owners, max(1, round(share * len(owners))), replace=False).tolist()))


def notes_about(sets: Sequence[Sequence[Hashable]], special: dict[str, Any]) -> dict[str, Any]:
    """The sizes of training, development and, if there is one, test set, what is `special` about the task, and the
    number of examples that occur in more than one set, which reward memorisation."""
    train, dev, *test = sets
    overlaps = {"of dev, also in train": count_overlap(train, dev)}
    for examples in test:
        overlaps |= {"of test, also in train": count_overlap(train, examples),
                     "of test, also in dev": count_overlap(dev, examples)}
    return {**dict(zip(("train", "dev", "test"), map(len, sets), strict=False)), **special, **overlaps}


def source_name(given: DataSource | Sequence[Any]) -> str:
    """The name of the data for a message."""
    return str(given) if isinstance(given, str | PathLike) else "The data"


def _no_teacher() -> ConfigError:
    return ConfigError("A teacher helps only with tasks that have one class for each text, or pair of texts; this task "
                       "is none of them.")
