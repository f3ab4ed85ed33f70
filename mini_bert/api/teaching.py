"""The teacher options of fine-tuning, checked before anything is trained."""

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..evaluation.formats.named import reader_of
from ..evaluation.formats.reading import load_texts
from ..evaluation.formats.tables import Labelled, read_table
from ..evaluation.tasks.storage import SavedTask, load_task
from ..evaluation.tasks.task import Task
from ..evaluation.tasks.teaching import Taught, TeachingConfig, taught
from ..workers import workers

Place = str | PathLike[str]


class Teaching:
    """A teacher, the settings that were given for it, and more texts for it to label."""

    def __init__(self, teacher: Place | None, settings: Mapping[str, Any], unlabelled: Place | None, curve: bool):
        given = {name: value for name, value in settings.items() if value is not None}
        self.teacher, self.unlabelled, self.config = teacher, unlabelled, TeachingConfig.from_dict(given)
        if teacher is None and (given or unlabelled is not None):
            option = next(iter(given), "unlabelled")
            name = option if option in ("temperature", "augment", "unlabelled") else f"teacher_{option}"
            raise ConfigError(f"{name} needs a teacher; name one with teacher.")
        if teacher is not None and curve:
            raise ConfigError("curve measures how many labels a model needs, but a teacher adds labels; give only one "
                              "of the two.")
        if "temperature" in given and self.config.loss == "squared":
            raise ConfigError("temperature applies only to teacher_loss kl, not to squared.")
        self.saved: SavedTask | None = None if teacher is None else load_task(teacher)
        self.texts: list[Labelled] = [] if unlabelled is None else _texts(unlabelled)

    @property
    def files(self) -> list[Place]:
        return [name for name in (self.teacher, self.unlabelled) if name is not None]

    def options(self) -> dict[str, Any]:
        """What a cached result depends on, besides the files."""
        return {} if self.teacher is None else {"teacher": self.config.to_dict(), "unlabelled": self.unlabelled}

    def examples(self, task: Task[Any], threads: int, seed: int,
                 progress: Callable[[int, int], None]) -> Taught | None:
        """The training data with the teacher's scores."""
        if self.saved is None:
            return None
        with workers(threads) as team:
            return taught(task, self.saved, self.config, team, seed=seed, unlabelled=self.texts, progress=progress)


def _texts(place: Place) -> list[Labelled]:
    return read_table(Path(place), labelled=False) if reader_of(place) is None else load_texts(place)
