"""mini-bert finetune: train a model for a task."""

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from ...api.finetune import OPTIONS, Finetuning, counts
from ...core.registry import words
from ...errors import ConfigError
from ...evaluation.cost import with_cost
from ...evaluation.formats.tables import Columns
from ...evaluation.statistics import over_seeds
from ...evaluation.suite.result_cache import cached_result
from ...training.finder import Search
from ...training.loop import Listener, State
from ..config_file import ConfigOption, with_settings_of_file
from ..output import FreshOption, Output, SeedOption, ThreadsOption, shown_cost, table
from ..table_options import EncodingOption, LabelColumnOption, TextColumnOption
from ..use.inference import Model, files_of
from .found_rates import shown_search
from .teaching import Augment, LabelsAlone, Teacher, TeacherLoss, TeacherWeight, Temperature, Unlabelled


def finetune_command(train: Annotated[str, typer.Option("--train", metavar="FILE", help="Training data.")],
                     dev: Annotated[str | None, typer.Option(
                         "--dev", metavar="FILE", help="Development data, to decide when to stop, and to evaluate on "
                                                       "if there is no --test. Default: a tenth of --train.")] = None,
                     test: Annotated[str | None, typer.Option("--test", metavar="FILE", help="Test data, which "
                                                              "training does not see.")] = None,
                     task: Annotated[str | None, typer.Option(
                         metavar="WORD", help=f"One of {', '.join(words('task'))}. Default: by the data.",
                         show_default=False)] = None,
                     text_column: TextColumnOption = None, label_column: LabelColumnOption = None,
                     encoding: EncodingOption = None,
                     metric: Annotated[str | None, typer.Option(
                         metavar="WORD", help=f"The metric that decides which epoch is best: one of "
                                              f"{', '.join(words('metric'))}. "
                         "Default: the task's usual one.", show_default=False)] = None,
                     model: Model = "mini",
                     out: Annotated[Path | None, typer.Option("--out", "-o", metavar="DIR", help="Where to save the "
                                                              "model of the best seed by --dev, replacing an earlier "
                                                              "one. With it, the model is always trained.")] = None,
                     head: Annotated[str | None, typer.Option(metavar="WORD", help="Another head than the task's usual "
                                     "one, such as first_token or one of your own.", show_default=False)] = None,
                     optimiser: Annotated[str, typer.Option(metavar="WORD", help="The optimiser, such as adamw, "
                                          "\"sgd(momentum=0.9)\" or one of your own.")] = "adamw",
                     epochs: Annotated[int, typer.Option(min=1, help="Passes through the data.")] = 5,
                     learning_rate: Annotated[float | None, typer.Option(
                         help="Default: 7e-4 for small models, 5e-5 for others.")] = None,
                     find_lr: Annotated[bool, typer.Option("--find-lr", help="Search for the learning rate first, by "
                                        "short trials on the training data.")] = False,
                     batch_size: Annotated[int, typer.Option(min=1, help="Examples per step.")] = 32,
                     settings: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE",
                                         callback=with_settings_of_file, help="Another "
                                         "setting, such as layer_decay=0.9, freeze=embeddings or patience=2.")] = None,
                     seeds: Annotated[int, typer.Option(min=1, help="Number of runs, each with its own seed.")] = 1,
                     max_samples: Annotated[int | None, typer.Option(
                         min=2, help="Limit of training and of development examples; a test set stays whole.")] = None,
                     random_init: Annotated[bool, typer.Option(
                         "--random-init/--no-random-init", help="Also train from random weights.")] = True,
                     curve: Annotated[bool, typer.Option("--curve", help="Also train on 1, 3, 10 and 30 % of the "
                                                         "data.")] = False,
                     forgetting: Annotated[list[str] | None, typer.Option(
                         "--forgetting", metavar="FILE", help="Text on which to measure masked accuracy before and "
                                                              "after; may be repeated.")] = None,
                     teacher: Teacher = None, teacher_weight: TeacherWeight = None, teacher_loss: TeacherLoss = None,
                     temperature: Temperature = None, augment: Augment = None, unlabelled: Unlabelled = None,
                     labels_alone: LabelsAlone = True,
                     threads: ThreadsOption = 0, fresh: FreshOption = False, config_file: ConfigOption = None,
                     seed: SeedOption = 0, *, output: Output) -> None:
    """Fine-tune a model for a task, and compare it with baselines. With --teacher, it also learns from the scores of a
    larger model that has learned the task (distillation).

    Data: a table (CSV, TSV, JSON, JSON lines or Parquet) with a text and its label in each row; CoNLL, CoNLL-U or a
    table of lists for ner, SQuAD's JSON for qa; or hub:NAME:CONFIG:SPLIT. Columns, delimiter and task are inferred from
    names and content, and printed; texts longer than the model's window are read in overlapping windows.

    Example: mini-bert finetune --train reviews.csv --out reviews.model

    Example: mini-bert finetune --train pairs.csv --text-column first --text-column second --label-column similar

    Example: mini-bert finetune --train reviews/train.tsv --dev reviews/dev.tsv --seeds 3 --out films.model

    Example: mini-bert finetune --train reviews/train.tsv --dev reviews/dev.tsv --find-lr

    Example: mini-bert finetune --config finetuning --train reviews.csv --seeds 1

    Example: mini-bert finetune --train reviews.csv --teacher reviews.model --unlabelled new.csv
    """
    given = {"weight": teacher_weight, "loss": teacher_loss, "temperature": temperature, "augment": augment}
    forgotten = files_of("--forgetting", forgetting)
    columns = Columns(tuple(text_column or ()), tuple(label_column or ()), encoding)
    asked = Finetuning(
        train=train, dev=dev, test=test, task=task, columns=columns, metric=metric, model=model, out=out, head=head,
        optimiser=optimiser, epochs=epochs, learning_rate=learning_rate, find_lr=find_lr, batch_size=batch_size,
        settings=_settings(settings or []), seeds=seeds, max_samples=max_samples,
        random_init=random_init, curve=curve, forgetting=forgetting or (), teacher=teacher,
        teaching={name: value for name, value in given.items() if value is not None},
        unlabelled=unlabelled, labels_alone=labels_alone, threads=threads, seed=seed)
    display = _Display(output)

    def compute() -> dict[str, Any]:
        with display:
            return asked.run(display).to_dict()

    # with --out always train, so that the saved model is the one that the results belong to
    files: list[str | Path] = [model, train, *(file for file in (dev, test) if file), *forgotten,
                               *map(Path, asked.teachers.files)]
    found = cached_result("finetune", asked.key(), files, with_cost(compute), fresh=fresh or out is not None)
    output.result({"task": asked.guess.task, "head": asked.head_word, "model": model, **found,
                   "out": str(out) if out else None},
                  *([] if display.heard else [*map(escape, found["read"]), counts(found["notes"]), ""]),
                  *_shown(found, out))


class _Display(Listener):
    """A line with a bar for each run at a terminal, and sentences."""

    def __init__(self, output: Output):
        self.output, self.heard, console = output, False, Console(stderr=True, highlight=False, emoji=False)
        self._bar = Progress(TextColumn("{task.description}"), BarColumn(),
                             TextColumn("{task.completed:,.0f}/{task.total:,.0f}"), TextColumn("{task.fields[shown]}"),
                             TimeRemainingColumn(), console=console, transient=True,
                             disable=output.silent or not console.is_interactive)
        self._line, self._best = TaskID(0), ""

    def __enter__(self) -> None:
        self._bar.start()

    def __exit__(self, *exception: object) -> None:
        self._bar.stop()

    def began(self, trainer: Any) -> None:
        self._best = ""
        self._line = self._bar.add_task(trainer.name, total=trainer.state.total_steps, shown="")

    def stepped(self, state: State, loss: float) -> None:
        shown = f"loss {state.mean_loss:.3f}{self._best}" if state.smoothing else ""
        self._bar.update(self._line, total=state.total_steps, completed=state.step, shown=shown)

    def logged(self, record: dict[str, Any]) -> None:
        self._best = f", best {record['best']:.1%}"

    def said(self, message: str) -> None:
        self.heard = True
        self.output.say(escape(message))


def _settings(given: list[str]) -> dict[str, str]:
    changes: dict[str, str] = {}
    for setting in given:
        key, equals, value = (part.strip() for part in setting.partition("="))
        if not equals:
            raise ConfigError(f"{setting!r} is not a setting; write KEY=VALUE, such as layer_decay=0.9.")
        if key in OPTIONS:
            raise ConfigError(f"{key} cannot be set with --set; use the option --{key.replace('_', '-')}.")
        changes[key] = value
    return changes


def _shown(found: dict[str, Any], out: Path | None) -> list[object]:
    names = list(found["figures"])
    figures = table("", *names, right=tuple(names))
    figures.add_row("[bold]fine-tuned[/bold]", *(f"[bold]{over_seeds(found['figures'][name]).shown()}[/bold]"
                                                 for name in names))
    if found["labels_alone"]:
        figures.add_row("labels alone", *(over_seeds(found["labels_alone"][name]).shown() for name in names))
    if found["from_random"]:
        figures.add_row("from random weights", *(over_seeds(found["from_random"][name]).shown() for name in names))
    for name, value in found["baselines"].items():
        figures.add_row(name, f"{100 * value:.1f}", *[""] * (len(names) - 1))
    seeds = len(found["figures"][names[0]])
    shown: list[object] = [figures, f"Percent; {f'{seeds} seeds, with 95 % intervals' if seeds > 1 else 'one seed'}.",
                           "Measured on the test set, which training did not see." if found["dev_figures"] else
                           "Measured on the development set, which also stopped training; see --test."]
    if "search" in found:
        shown = [*shown_search(Search(**{field.name: found["search"][field.name] for field in fields(Search)})), "",
                 *shown]
    if found["curve"]:
        curve = table("share of the data", names[0], right=("share of the data", names[0]))
        for share, value in found["curve"].items():
            curve.add_row(f"{float(share):.0%}", f"{100 * value:.1f}")
        shown += ["", curve]
    if "forgetting" in found:
        lost = table("filling masks", "loss", "accuracy", right=("loss", "accuracy"))
        for name, report in found["forgetting"].items():
            lost.add_row(name, f"{report['loss']:.3f}", f"{report['masked_accuracy']:.1%}")
        shown += ["", lost]
    return [*shown, shown_cost(found), *([f"The model: {escape(str(out))}"] if out is not None else [])]
