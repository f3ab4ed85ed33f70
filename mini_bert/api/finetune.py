"""`mini_bert.finetune`: train a model for a task, compare it with baselines, and save it; as `mini-bert finetune`."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

from ..core.model import MiniBERT
from ..core.registry import find, make, takes
from ..core.task_model import TaskModel
from ..errors import ConfigError
from ..evaluation.formats.named import DataSource
from ..evaluation.formats.tables import Columns, Labelled
from ..evaluation.statistics import over_seeds
from ..evaluation.tasks.forgetting import masked_before_and_after
from ..evaluation.tasks.guess import Guess, guess_task
from ..evaluation.tasks.run import TaskResult, find_rate, require_head, run_task, usual_learning_rate
from ..evaluation.tasks.storage import SavedTask, claim_task, require_replaceable, save_task
from ..evaluation.tasks.task_names import Task
from ..parallel.processes import world
from ..text.corpora.temporary import temporary_corpus
from ..training.finder import Search
from ..training.finetune import FinetuneConfig
from ..training.loop import Listener
from ..training.progress import heard
from .hearing import announcer, counter
from .pipeline import Pipeline, pipeline
from .results import Printed
from .teaching import Teaching

Data = DataSource | Sequence[tuple[str, str]] | Sequence[Labelled]       # a file, or (text, label) of each example
SHARES = (0.01, 0.03, 0.1, 0.3)       # of the data, for a learning curve
OPTIONS = ("epochs", "optimiser", "learning_rate", "batch_size", "threads", "seed")       # which are not `settings`


@dataclass(frozen=True, repr=False)
class FinetuneResult(Printed):
    """A fine-tuned model, and its scores next to those of random weights and simple baselines."""

    task: str
    head: str
    pipeline: Pipeline                    # of the best seed by the development set
    result: TaskResult
    said: list[str]                       # about the data
    out: Path | None = None
    search: Search | None = None          # for a learning rate
    forgetting: dict[str, Any] = field(default_factory=dict)

    @property
    def figures(self) -> dict[str, float]:
        """The mean of each metric over the seeds."""
        return {name: interval.mean for name, interval in self.result.mean.items()}

    def __str__(self) -> str:
        names = list(self.result.figures)
        rows = [("fine-tuned", self.result.figures)]
        rows += [(name, found) for name, found in (("labels alone", self.result.labels_alone),
                                                   ("from random weights", self.result.from_random)) if found]
        lines = [f"{self.task}, percent on {self.result.measured:,} examples ({self.result.measured_on})",
                 f"  {'':20}" + "".join(f"{name:>14}" for name in names)]
        lines += [f"  {what:20}" + "".join(f"{over_seeds(found[name]).shown():>14}" for name in names)
                  for what, found in rows]
        lines += [f"  {name:20}{100 * value:14.1f}" for name, value in self.result.baselines.items()]
        return "\n".join([*lines, *([f"The model: {self.out}"] if self.out is not None else [])])

    def to_dict(self) -> dict[str, Any]:
        found = self.result.to_dict() | {"read": self.said}
        found |= {"search": asdict(self.search)} if self.search is not None else {}
        return found | ({"forgetting": self.forgetting} if self.forgetting else {})


def finetune(train: Data, dev: Data | None = None, *, test: Data | None = None, task: str | None = None,
             text_column: str | Sequence[str] = (), label_column: str | Sequence[str] = (), encoding: str | None = None,
             metric: str | None = None, model: str | PathLike[str] = "mini", out: str | PathLike[str] | None = None,
             head: str | None = None, optimiser: str = "adamw", epochs: int = 5, learning_rate: float | None = None,
             find_lr: bool = False, batch_size: int = 32, settings: Mapping[str, Any] | None = None, seeds: int = 1,
             max_samples: int | None = None, random_init: bool = True, curve: bool = False,
             forgetting: Sequence[str] = (), teacher: str | PathLike[str] | None = None,
             teaching: Mapping[str, Any] | None = None, unlabelled: str | PathLike[str] | None = None,
             labels_alone: bool = True, threads: int = 0, seed: int = 0,
             listener: Listener | Sequence[Listener] | None = None) -> FinetuneResult:
    """Fine-tune a model on the examples `train`: a table with a text and its label in each row, other files that
    `mini-bert finetune --help` names, or (text, label) of each example.

    Without `dev`, a tenth of the examples decides when to stop. `out` is where the model is saved, for
    `mini_bert.pipeline`. `settings` are further fields of a FinetuneConfig, `teaching` those of a TeachingConfig. One
    listener or several hear of the training; without any, a notebook or a terminal shows a progress bar.
    """
    text, label = ((names,) if isinstance(names, str) else tuple(names) for names in (text_column, label_column))
    columns = Columns(text, label, encoding)
    return Finetuning(
        train=train, dev=dev, test=test, task=task, columns=columns, metric=metric, model=model, out=out, head=head,
        optimiser=optimiser, epochs=epochs, learning_rate=learning_rate, find_lr=find_lr, batch_size=batch_size,
        settings=settings or {}, seeds=seeds, max_samples=max_samples, random_init=random_init, curve=curve,
        forgetting=forgetting, teacher=teacher, teaching=teaching or {}, unlabelled=unlabelled,
        labels_alone=labels_alone, threads=threads, seed=seed).run(heard(listener))


@dataclass(kw_only=True)
class Finetuning:
    """The arguments of `finetune`, refused before anything is trained if something does not fit."""

    train: Data
    dev: Data | None
    test: Data | None
    task: str | None
    columns: Columns
    metric: str | None
    model: str | PathLike[str]
    out: str | PathLike[str] | None
    head: str | None
    optimiser: str
    epochs: int
    learning_rate: float | None
    find_lr: bool
    batch_size: int
    settings: Mapping[str, Any]
    seeds: int
    max_samples: int | None
    random_init: bool
    curve: bool
    forgetting: Sequence[str]
    teacher: str | PathLike[str] | None
    teaching: Mapping[str, Any]
    unlabelled: str | PathLike[str] | None
    labels_alone: bool
    threads: int
    seed: int

    def __post_init__(self) -> None:
        train = _records(self.train)
        self.sets = train, *(None if data is None else _records(data) for data in (self.dev, self.test))
        self.guess = guess_task(train, self.columns) if self.task is None else Guess(self.task, "")
        kind: type[Task[Any]] = find("task", self.guess.task).named
        self.of_tables = _of_tables(self.guess.task, self.columns, self.metric)
        self.opened = pipeline(self.model)
        self._check_first(self.opened.model)
        rate = usual_learning_rate(self.opened.model) if self.learning_rate is None else self.learning_rate
        self.config = _config({"epochs": self.epochs, "optimiser": self.optimiser, "learning_rate": rate,
                               "batch_size": self.batch_size, "threads": self.threads}, self.settings)
        self.head_word = kind.head if self.head is None else self.head
        require_head(self.head_word, kind.answers, self.opened.model.config)
        self.teachers = Teaching(self.teacher, self.teaching, self.unlabelled, self.curve)

    def _check_first(self, model: MiniBERT) -> None:
        if self.find_lr and self.learning_rate is not None:
            raise ConfigError("learning_rate and find_lr both set the learning rate; give only one of them.")
        if self.out is not None:
            require_replaceable(Path(self.out))
        if self.forgetting and not model.modules.predicts_words:
            raise ConfigError("forgetting needs a model with an MLM head, which this one does not have.")

    def key(self) -> dict[str, Any]:
        """What the result depends on, besides the files."""
        return {"task": self.guess.task, "head": self.head_word, "config": self.config.to_dict(), "seeds": self.seeds,
                "seed": self.seed, "max_samples": self.max_samples, "random_init": self.random_init,
                "curve": self.curve, "forgetting": self.forgetting, "test": self.test, "find_lr": self.find_lr,
                "labels_alone": self.labels_alone, "dev": self.dev is not None, "metric": self.metric,
                "columns": asdict(self.columns), **self.teachers.options()}

    def run(self, listener: Listener) -> FinetuneResult:
        """Train, measure, and save."""
        if self.guess.why:
            listener.said(f"The task is {self.guess.task}, because {self.guess.why}.")
        writes = self.out is not None and world().rank == 0
        with claim_task(Path(self.out)) if self.out is not None and writes else nullcontext() as claim:
            model, tokenizer = self.opened.model, self.opened.tokenizer
            train, dev, test = self.sets
            data: Task[Any] = make("task", self.guess.task, train, dev, tokenizer, model.config, test=test,
                                   max_samples=self.max_samples, seed=self.seed, **self.of_tables)
            for sentence in (*data.said, counts(data.notes)):
                listener.said(sentence)
            config, search = self.config, None
            if self.find_lr:
                search = find_rate(data, model, replace(config, seed=self.seed), head=self.head_word,
                                   progress=counter(listener, "trials of learning rates"))
                config = replace(config, learning_rate=search.suggestion)
            examples = self.teachers.examples(data, self.threads, self.seed, counter(listener, "the teacher reads"))
            if examples is not None:
                data.notes |= {"texts that the teacher labelled": examples.texts}
            result, best = run_task(data, model, config, seeds=range(self.seed, self.seed + self.seeds),
                                    head=self.head_word, random_init=self.random_init, teaching=examples,
                                    labels_alone=self.labels_alone, shares=SHARES if self.curve else (),
                                    announce=announcer(listener))
            columns = () if data.columns is None else data.columns.text
            if self.out is not None and writes:
                about = {"from": str(self.model), "figures": result.to_dict()["mean"]}
                save_task(self.out, best, tokenizer, self.guess.task, data.labels,
                          about | ({"columns": list(columns)} if data.columns is not None else {}), pairs=data.pairs,
                          claim=claim)
        saved = SavedTask(best, tokenizer, self.guess.task, data.labels, data.pairs, columns)
        name = f"{self.opened.name}, fine-tuned" if self.out is None else Path(self.out).name
        return FinetuneResult(self.guess.task, self.head_word, Pipeline(name, best, tokenizer, saved,
                                                                        threads=self.threads),
                              result, data.said, None if self.out is None else Path(self.out), search,
                              self._forgotten(best))

    def _forgotten(self, after: TaskModel) -> dict[str, Any]:
        """Masked loss and accuracy on the texts of `forgetting`, before and after."""
        if not self.forgetting:
            return {}
        before = self.opened.model
        with temporary_corpus(self.forgetting, self.opened.tokenizer) as corpus:
            reports = masked_before_and_after(before, after, corpus, length=min(64, before.config.max_seq_length),
                                              threads=self.threads)
        return {name: {"loss": report.loss, "masked_accuracy": report.accuracy}
                for name, report in zip(("before", "after"), reports, strict=True)}


def counts(notes: Mapping[str, Any]) -> str:
    """The numbers of examples, and of those that were cut or left out."""
    return ", ".join(f"{name}: {value:,}" if isinstance(value, int) else f"{name}: {value:.1%}"
                     for name, value in notes.items())


def _records(data: Data) -> DataSource | list[Labelled]:
    """Examples in memory as records; files stay."""
    return data if isinstance(data, str | PathLike) else list(_labelled(data))


def _labelled(data: Sequence[Any]) -> Iterator[Labelled]:
    for number, example in enumerate(data):
        if isinstance(example, Labelled):
            yield example
            continue
        if not isinstance(example, tuple | list) or len(example) not in (2, 3) or not isinstance(example[0], str):
            raise ConfigError(f"Example {number} is {str(example)[:60]!r}; examples in memory are (text, label), or "
                              "(text, second text, label).")
        text, *second, label = example
        yield Labelled(text, second[0] if second else None, str(label))


def _of_tables(task: str, columns: Columns, metric: str | None) -> dict[str, Any]:
    """What a task takes that reads tables, if it was given."""
    asked = {"columns": columns, "metric": metric}
    given = {name: value for name, value in asked.items() if value not in (None, Columns())}
    for name in given.keys() - takes("task", task):
        option = "metric" if name == "metric" else "text_column, label_column or encoding"
        raise ConfigError(f"The task {task} takes no {option}.")
    return given


def _config(values: dict[str, Any], settings: Mapping[str, Any]) -> FinetuneConfig:
    for key in settings:
        if key in OPTIONS:
            raise ConfigError(f"{key} is not one of the settings; give it as {key}=...")
    return FinetuneConfig.from_dict(values | dict(settings))
