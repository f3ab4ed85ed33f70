"""The options of mini-bert finetune for a teacher."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from ...errors import ConfigError
from ...evaluation.formats.named import reader_of
from ...evaluation.formats.reading import load_texts
from ...evaluation.formats.tables import Labelled, read_table
from ...evaluation.tasks.storage import SavedTask, load_task
from ...evaluation.tasks.task import Task
from ...evaluation.tasks.teaching import Taught, TeachingConfig, taught
from ...training.workers import workers

Teacher = Annotated[str | None, typer.Option("--teacher", metavar="DIR", help="Also learn from the scores of this "
                    "model, which `mini-bert finetune` saved, or a classifier of transformers.", show_default=False)]
TeacherWeight = Annotated[float | None, typer.Option("--teacher-weight", help="Weight of the teacher's scores; the "
                          "labels have the rest. Default: 0.9.", show_default=False)]
TeacherLoss = Annotated[str | None, typer.Option("--teacher-loss", metavar="kl|squared", help="What is compared: "
                        "softened probabilities, or the scores themselves. Default: kl.", show_default=False)]
Temperature = Annotated[float | None, typer.Option("--temperature", help="Softens the probabilities of kl. Default: 2.",
                                                   show_default=False)]
Augment = Annotated[int | None, typer.Option("--augment", metavar="N", help="Texts to make from each training text, by "
                    "hiding words and taking parts, for the teacher to label. Default: 0.", show_default=False)]
Unlabelled = Annotated[str | None, typer.Option("--unlabelled", metavar="FILE", help="More texts for the teacher to "
                       "label, as --train has them; labels are not read.", show_default=False)]
LabelsAlone = Annotated[bool, typer.Option("--labels-alone/--no-labels-alone", help="With --teacher, also train "
                        "without it.")]


class Teaching:
    """What a command was told about a teacher, checked before anything is trained."""

    def __init__(self, teacher: str | None, settings: dict[str, Any], unlabelled: str | None, curve: bool):
        given = {name: value for name, value in settings.items() if value is not None}
        self.teacher, self.unlabelled, self.config = teacher, unlabelled, TeachingConfig.from_dict(given)
        if teacher is None and (given or unlabelled is not None):
            option = next(iter(given), "unlabelled")
            name = option if option in ("temperature", "augment", "unlabelled") else f"teacher-{option}"
            raise ConfigError(f"--{name} is about a teacher; name one with --teacher.")
        if teacher is not None and curve:
            raise ConfigError("--curve measures how many labels a model needs, and --teacher adds to them; give one of "
                              "them.")
        if "temperature" in given and self.config.loss == "squared":
            raise ConfigError("--temperature softens the probabilities of --teacher-loss kl; squared has none.")
        self.saved: SavedTask | None = None if teacher is None else load_task(teacher)
        self.texts: list[Labelled] = [] if unlabelled is None else _texts(unlabelled)

    @property
    def files(self) -> list[str]:
        return [name for name in (self.teacher, self.unlabelled) if name is not None]

    def options(self) -> dict[str, Any]:
        """What a cached result depends on, beside the files."""
        return {} if self.teacher is None else {"teacher": self.config.to_dict(), "unlabelled": self.unlabelled}

    def examples(self, task: Task[Any], threads: int, seed: int,
                 progress: Callable[[int, int], None]) -> Taught | None:
        """The training data with the teacher's scores."""
        if self.saved is None:
            return None
        with workers(threads) as team:
            return taught(task, self.saved, self.config, team, seed=seed, unlabelled=self.texts, progress=progress)


def _texts(place: str) -> list[Labelled]:
    return read_table(Path(place), labelled=False) if reader_of(place) is None else load_texts(place)
