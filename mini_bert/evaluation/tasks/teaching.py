"""A teacher for a task: it reads the training texts, others made from them, and texts without labels, once.

Its scores are kept in memory for all epochs and seeds. It has its own tokenizer; its labels must be those of the data.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...core.arrays import Array, BoolArray, IntArray
from ...core.registry import make
from ...core.task_model import TaskModel
from ...errors import ConfigError
from ...objectives.distillation.taught_task import SCORE_DISTANCES, TaughtBatch, TaughtTask
from ...objectives.objective import PassOptions
from ...settings import Settings
from ...text.augmentation import augmented
from ...workers import Workers
from ..formats.tables import Labelled
from .encode import Encoded, encode_texts, with_masks
from .predict import scores_of_texts
from .storage import SavedTask
from .task import Task

_AT_ONCE = 1024               # texts that the teacher reads between two reports of progress
Reading = Callable[[int, int], None]      # called with the number of texts that the teacher has read, and of all


@dataclass(frozen=True)
class TeachingConfig(Settings):
    TITLE: ClassVar[str] = "The teacher's settings"

    weight: float = 0.9                   # of the teacher's scores; the labels have the rest
    loss: str = "kl"                      # kl or squared
    temperature: float = 2.0              # for kl
    augment: int = 0                      # texts made from each training text

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.weight <= 1:
            raise ConfigError(f"The teacher's weight must be above 0 and at most 1, not {self.weight:g}.")
        if self.loss not in SCORE_DISTANCES:
            raise ConfigError(f"The teacher's loss must be one of {', '.join(SCORE_DISTANCES)}, not {self.loss!r}.")
        if not 0 < self.temperature < float("inf"):
            raise ConfigError(f"The temperature must be above 0, not {self.temperature:g}.")
        if self.augment < 0:
            raise ConfigError(f"augment must be at least 0, not {self.augment}.")


class Taught(NamedTuple):
    """Training sequences with the teacher's scores (N, C); `labelled` (N,) are those that have a label."""

    encoded: Encoded
    scores: Array
    labelled: BoolArray
    config: TeachingConfig
    texts: int                            # that the teacher has read

    @property
    def lengths(self) -> list[int]:
        return self.encoded.lengths

    def collate(self, numbers: IntArray) -> TaughtBatch:
        return TaughtBatch(self.encoded.collate(numbers), self.scores[numbers], self.labelled[numbers])

    def objective(self, model: TaskModel, passes: PassOptions) -> TaughtTask:
        distance = SCORE_DISTANCES[self.config.loss](self.config.temperature)
        return TaughtTask(model, passes, distance, self.config.weight)


def taught(task: Task[Any], teacher: SavedTask, config: TeachingConfig, team: Workers, *, seed: int = 0,
           unlabelled: Sequence[Labelled] = (), progress: Reading = lambda done, of: None) -> Taught:
    """The training data of a task with the scores of a teacher, and what else it can label."""
    known = task.texts()                                  # refuses tasks that have no single class per text
    if teacher.model.task.answers is not task.answers:
        raise ConfigError(f"The teacher gives {teacher.model.task.answers.value}; this task needs "
                          f"{task.answers.value}.")
    if type(teacher.model.loss) is not type(make("task_loss", task.loss)):
        raise ConfigError("The teacher was not trained to choose one class for each text, which this task needs.")
    order = label_order(teacher, task.labels)
    more = [*_made_from(known, config.augment, seed), *unlabelled]
    if any((record.pair is not None) != task.pairs for record in more):
        raise ConfigError(f"The texts without labels must be {'pairs' if task.pairs else 'single texts'}, as those of "
                          "the training data are.")
    seen = {(record.text, record.pair) for record in known}
    records = [record for (text, pair), record in {(record.text, record.pair): record for record in more}.items()
               if (text, pair) not in seen]
    encoded = _joined(task.train, task.encoded(records))
    scores = _scores(teacher, [*known, *records], team, progress)[:, order]
    owners = np.array(encoded.owners)                     # all windows of a text have its scores
    return Taught(encoded, scores[owners], owners < len(known), config, len(scores))


def label_order(teacher: SavedTask, labels: Sequence[str]) -> list[int]:
    """The column of the teacher's scores for each label of the data. Names such as LABEL_0, as transformers gives to
    labels without one, stand for the labels in their order."""
    theirs = [str(label).lower() for label in teacher.labels]
    if theirs == [f"label_{i}" for i in range(len(labels))]:
        return list(range(len(labels)))
    if sorted(theirs) != sorted(label.lower() for label in labels):
        raise ConfigError(f"The teacher has the labels {', '.join(teacher.labels[:10])}, and the data "
                          f"{', '.join(labels[:10])}; both must have the same names.")
    return [theirs.index(label.lower()) for label in labels]


def _made_from(records: Sequence[Labelled], times: int, seed: int) -> list[Labelled]:
    """Texts made from the records; of a pair, one text is changed, now the first and now the second."""
    if not times:
        return []
    first = augmented([record.text for record in records], times, seed)
    if records[0].pair is None:
        return [Labelled(text, None, "") for texts in first for text in texts]
    second = augmented([record.pair or "" for record in records], times, seed + 1)
    made = []
    for record, texts, pairs in zip(records, first, second, strict=True):
        made += [Labelled(text, record.pair, "") for text in texts[::2]]
        made += [Labelled(record.text, pair, "") for pair in pairs[1::2]]
    return made


def _joined(first: Encoded, second: Encoded) -> Encoded:
    """The sequences of both; owners go on counting."""
    after = max(first.owners, default=-1) + 1
    return replace(first, rows=first.rows + second.rows,
                   types=None if first.types is None or second.types is None else first.types + second.types,
                   answers=first.answers + second.answers,
                   owners=first.owners + [after + owner for owner in second.owners],
                   weights=first.weights + second.weights)


def _scores(teacher: SavedTask, records: Sequence[Labelled], team: Workers,
            progress: Reading) -> Array:
    """The teacher's scores of all records (N, C)."""
    config, tokenizer = teacher.model.config, teacher.tokenizer
    found = []
    for start in range(0, len(records), _AT_ONCE):
        some = with_masks(records[start : start + _AT_ONCE], tokenizer)
        encoded = encode_texts(some, tokenizer, config.max_seq_length, [], with_types=config.token_types > 1)
        found.append(scores_of_texts(teacher.model, encoded, team))
        progress(start + len(some), len(records))
    return np.concatenate(found)
