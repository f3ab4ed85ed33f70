"""mini-bert finetune: train a model for a task."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.progress import TaskID, TextColumn

from ...core.model import MiniBERT
from ...core.registry import find, make, takes, words
from ...core.task_model import TaskModel
from ...errors import ConfigError
from ...evaluation.cost import with_cost
from ...evaluation.formats.tables import Columns
from ...evaluation.statistics import over_seeds
from ...evaluation.suite.result_cache import cached_result
from ...evaluation.tasks.forgetting import masked_before_and_after
from ...evaluation.tasks.guess import Guess, guess_task
from ...evaluation.tasks.run import find_rate, require_head, run_task, usual_learning_rate
from ...evaluation.tasks.storage import claim_task, require_replaceable, save_task
from ...evaluation.tasks.task_names import Task
from ...inference.inputs import require_vocabulary
from ...text.corpora.temporary import temporary_corpus
from ...text.tokenizer import Tokenizer
from ...training.finetune import FinetuneConfig, Progress
from ..config_file import ConfigOption, with_settings_of_file
from ..output import FreshOption, Output, SeedOption, ThreadsOption, progress_bar, shown_cost, table
from ..table_options import LabelColumnOption, TextColumnOption
from ..use.inference import Model, files_of, opened
from .found_rates import search_data, shown_search
from .teaching import Augment, LabelsAlone, Teacher, TeacherLoss, TeacherWeight, Teaching, Temperature, Unlabelled


def finetune_command(train: Annotated[str, typer.Option("--train", metavar="FILE", help="Training data.")],
                     dev: Annotated[str | None, typer.Option(
                         "--dev", metavar="FILE", help="Development data, to stop training, and to measure if there is "
                                                       "no --test. Default: a tenth of --train.")] = None,
                     test: Annotated[str | None, typer.Option("--test", metavar="FILE", help="Test data, which "
                                                              "training does not see.")] = None,
                     task: Annotated[str | None, typer.Option(
                         metavar="WORD", help=f"One of {', '.join(words('task'))}. Default: by the data.",
                         show_default=False)] = None,
                     text_column: TextColumnOption = None, label_column: LabelColumnOption = None,
                     metric: Annotated[str | None, typer.Option(
                         metavar="WORD", help=f"The figure that training raises: one of {', '.join(words('metric'))}. "
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
    table of lists for ner, SQuAD's JSON for qa; or hub:NAME:CONFIG:SPLIT. Columns, delimiter and the task are found by
    names and content, and said; texts longer than the model reads at once are read in overlapping windows.

    Example: mini-bert finetune --train reviews.csv --out reviews.model

    Example: mini-bert finetune --train pairs.csv --text-column first --text-column second --label-column similar

    Example: mini-bert finetune --task sst2 --train sst2/train.tsv --dev sst2/dev.tsv --seeds 5 --out sst2.model

    Example: mini-bert finetune --task sst2 --train sst2/train.tsv --dev sst2/dev.tsv --find-lr

    Example: mini-bert finetune --config finetuning --train sst2/train.tsv --dev sst2/dev.tsv --seeds 1

    Example: mini-bert finetune --train few.tsv --dev dev.tsv --teacher large.model --unlabelled many.tsv
    """
    columns = Columns(tuple(text_column or ()), tuple(label_column or ()))
    guessed = Guess(task, "") if task is not None else guess_task(train, columns)
    task, kind = guessed.task, find("task", guessed.task).named
    chosen = _of_tables(task, columns, metric)
    if guessed.why:
        output.say(f"The task is {task}, because {guessed.why}; --task chooses another.")
    network, tokenizer = opened(model)
    require_vocabulary(network, tokenizer)
    forgotten = files_of("--forgetting", forgetting)
    _check_first(out, forgotten, network)
    if find_lr and learning_rate is not None:
        raise ConfigError("--learning-rate and --find-lr both set the learning rate; give only one of them.")
    rate = usual_learning_rate(network) if learning_rate is None else learning_rate
    config = _config({"epochs": epochs, "optimiser": optimiser, "learning_rate": rate, "batch_size": batch_size,
                      "threads": threads}, settings or [])
    head = kind.head if head is None else head
    require_head(head, kind.answers, network.config)
    teaching = Teaching(teacher, {"weight": teacher_weight, "loss": teacher_loss, "temperature": temperature,
                                  "augment": augment}, unlabelled, curve)

    printed: list[dict[str, Any]] = []

    def compute() -> dict[str, Any]:
        data: Task[Any] = make("task", task, train, dev, tokenizer, network.config, max_samples=max_samples, seed=seed,
                               test=test, **chosen)
        output.say(*map(escape, data.said), _counts(data.notes))
        printed.append(data.notes)
        used, search = _searched(data, network, head, replace(config, seed=seed), output) if find_lr else (config, {})
        with progress_bar(TextColumn("{task.fields[shown]}"), quiet=output.silent) as bar:
            examples = teaching.examples(data, threads, seed, _reader(bar))
            if examples is not None:
                data.notes |= {"texts that the teacher labelled": examples.texts}
            result, best = run_task(data, network, used, seeds=range(seed, seed + seeds), head=head,
                                    random_init=random_init, teaching=examples, labels_alone=labels_alone,
                                    shares=(0.01, 0.03, 0.1, 0.3) if curve else (), announce=_announcer(bar))
        if out is not None:
            about = {"from": model, "figures": result.to_dict()["mean"]}
            if data.columns is not None:
                about["columns"] = list(data.columns.text)
            save_task(out, best, tokenizer, task, data.labels, about, pairs=data.pairs, claim=claim)
        lost = {"forgetting": _forgotten(network, best, tokenizer, forgetting, threads)} if forgetting else {}
        return result.to_dict() | {"read": data.said} | search | lost

    options = {"task": task, "head": head, "config": config.to_dict(), "seeds": seeds, "seed": seed,
               "max_samples": max_samples, "random_init": random_init, "curve": curve, "forgetting": forgetting,
               "test": test, "find_lr": find_lr, "labels_alone": labels_alone, "dev": dev is not None,
               "metric": metric, "columns": asdict(columns), **teaching.options()}
    # with --out always train, so that the saved model is the one that the results belong to
    with nullcontext() if out is None else claim_task(out) as claim:
        files: list[str | Path] = [model, train, *(file for file in (dev, test) if file), *forgotten, *teaching.files]
        found = cached_result("finetune", options, files, with_cost(compute), fresh=fresh or out is not None)
    output.result({"task": task, "head": head, "model": model, **found, "out": str(out) if out else None},
                  *([] if printed else [*map(escape, found["read"]), _counts(found["notes"]), ""]),
                  *_shown(found, out))


def _of_tables(task: str, columns: Columns, metric: str | None) -> dict[str, Any]:
    """What a task takes that reads tables, if it was given."""
    asked = {"columns": columns, "metric": metric}
    given = {name: value for name, value in asked.items() if value not in (None, Columns())}
    for name in given.keys() - takes("task", task):
        option = "--metric" if name == "metric" else "--text-column and --label-column"
        raise ConfigError(f"The task {task} takes no {option}.")
    return given


def _check_first(out: Path | None, forgetting: list[Path], model: MiniBERT) -> None:
    """Refuse before training what would fail after it."""
    if out is not None:
        require_replaceable(out)
    if forgetting and not model.modules.predicts_words:
        raise ConfigError("--forgetting needs a model with an MLM head, which this one does not have.")


def _searched(data: Task[Any], model: MiniBERT, head: str, config: FinetuneConfig,
              output: Output) -> tuple[FinetuneConfig, dict[str, Any]]:
    """The config with the rate that was found, and the search for the result."""
    with output.progress("trials") as progress:
        search = find_rate(data, model, config, head=head, progress=progress)
    output.say(*shown_search(search), "")
    return replace(config, learning_rate=search.suggestion), {"search": search_data(search)}


def _forgotten(before: MiniBERT, after: TaskModel, tokenizer: Tokenizer, texts: list[str],
               threads: int) -> dict[str, Any]:
    """Masked loss and accuracy on the texts, before and after."""
    with temporary_corpus(texts, tokenizer) as corpus:
        reports = masked_before_and_after(before, after, corpus, length=min(64, before.config.max_seq_length),
                                          threads=threads)
    return {name: {"loss": report.loss, "masked_accuracy": report.accuracy}
            for name, report in zip(("before", "after"), reports, strict=True)}


def _config(values: dict[str, Any], settings: list[str]) -> FinetuneConfig:
    changes: dict[str, str] = {}
    for setting in settings:
        key, equals, value = (part.strip() for part in setting.partition("="))
        if not equals:
            raise ConfigError(f"{setting!r} is not a setting; write KEY=VALUE, such as layer_decay=0.9.")
        if key in (*values, "seed"):
            raise ConfigError(f"{key} cannot be set with --set; use the option --{key.replace('_', '-')}.")
        changes[key] = value
    return FinetuneConfig.from_dict(values | changes)


def _counts(notes: dict[str, Any]) -> str:
    """The numbers of examples, and of those that were cut or left out."""
    return ", ".join(f"{name}: {value:,}" if isinstance(value, int) else f"{name}: {value:.1%}"
                     for name, value in notes.items())


def _announcer(bar: Any) -> Callable[[str], Callable[[Progress], None]]:
    def announce(name: str) -> Callable[[Progress], None]:
        line: TaskID = bar.add_task(name, total=1, shown="")

        def hear(progress: Progress) -> None:
            score = "" if progress.best is None else f", best {progress.best:.1%}"
            bar.update(line, total=progress.total, completed=progress.step, shown=f"loss {progress.loss:.3f}{score}")

        return hear

    return announce


def _reader(bar: Any) -> Callable[[int, int], None]:
    """Shows how many texts the teacher has read."""
    lines: list[TaskID] = []

    def hear(done: int, total: int) -> None:
        if not lines:
            lines.append(bar.add_task("the teacher reads", total=total, shown=f"{total:,} texts"))
        bar.update(lines[0], completed=done)

    return hear


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
