"""Fine-tuning with its baselines, and catastrophic forgetting."""

from collections.abc import Callable
from typing import Any

from ....core.model import MiniBERT
from ....core.registry import make
from ....core.task_model import TaskModel
from ....errors import DataError
from ....training.finetune import FinetuneConfig, Progress
from ....workers import workers
from ...formats.reading import load_questions
from ...formats.squad import Question
from ...samples import sampled
from ...statistics import Interval, over_seeds, wilson_interval
from ...tasks.folder import TextFiles, question_files
from ...tasks.forgetting import measure_catastrophic_forgetting
from ...tasks.guess import guess_task
from ...tasks.run import TaskResult, run_task, usual_learning_rate
from ...tasks.task_names import Classification, Entities, Questions, Task
from ...tasks.texts.text_task import TextTask
from ..context import EvaluationContext
from ..rows import HIGHER, PartResult, SummaryRow, interval_note, with_interval
from .predictions import accuracy, predicted, sample

_DEV_SHARE = 5                # of a single file of questions, every fifth context is used to measure
# figures that are shares of trials, with the names that the summary has for them
_SHARES = {"accuracy": "accuracy", "entity_f1": "F1 of entities", "f1": "F1 of answers", "micro_f1": "F1 of labels"}
_NAMES = {**_SHARES, "mcc": "Matthews' correlation", "pearson": "Pearson's correlation"}
ONE_SET = "There is no labelled test set: scores are measured on the development set, which also stops training."
_MEASURED = "set that results are measured on"
_FEW = 2048                   # maximum number of sequences for masked accuracy before and after


def texts(context: EvaluationContext) -> PartResult:
    """Every folder of labelled texts; an unsuitable one is left out with a note."""
    rows, details, notes = [], {}, []
    tasks, unsuited = _suited(context)
    for name, task in tasks.items():
        found = _run(context, task, name)[0]
        rows.append(_row(found, name, found.measured))
        details[name] = found.to_dict()
        notes += [f"{name}: {note}" for note in _notes(found)]
    notes += [f"{name} was not measured: {reason}" for name, reason in unsuited.items()]
    return PartResult(rows, details, [*notes, interval_note(context.sizes.runs, _MEASURED)])


def entities(context: EvaluationContext) -> PartResult:
    task, name = _entities(context)
    found = _run(context, task, name)[0]
    assert context.tasks.entities is not None
    measured = context.sentences(context.tasks.entities.test)
    begun = sum(label.startswith("B-") for sentence in measured for label in sentence.entities or ())
    rows = [_row(found, name, max(1, round(begun * found.measured / len(measured))))]
    return PartResult(rows, {name: found.to_dict()}, [*_notes(found), interval_note(context.sizes.runs, _MEASURED)])


def questions(context: EvaluationContext) -> PartResult:
    train, dev, notes, name = _questions(context.tasks.questions)
    task = Questions(train, dev, context.tokenizer, context.model.config, max_samples=context.sizes.questions,
                     seed=context.seed)
    found = _run(context, task, name)[0]
    return PartResult([_row(found, name, found.measured)], {name: found.to_dict()},
                      [*notes, *_notes(found), interval_note(context.sizes.runs, _MEASURED)])


def _suited(context: EvaluationContext) -> tuple[dict[str, TextTask], dict[str, str]]:
    """The tasks of the folders of texts, all created before any is run; and the reasons for those left out."""
    tasks, reasons = {}, {}
    for pair in context.tasks.texts:
        try:
            tasks[pair.name] = _texts(context, pair)
        except DataError as error:
            reasons[pair.name] = str(error)
    if not tasks:
        raise DataError(" ".join(reasons.values()))
    return tasks, reasons


def _texts(context: EvaluationContext, pair: TextFiles) -> TextTask:
    task: TextTask = make("task", guess_task(pair.train).task, pair.train, pair.dev, context.tokenizer,
                          context.model.config, max_samples=context.sizes.examples, seed=context.seed)
    return task


def _entities(context: EvaluationContext) -> tuple[Entities, str]:
    files = context.tasks.entities
    assert files is not None
    most = context.sizes.examples and max(1, context.sizes.examples // 2)
    test = None if files.dev is None else sampled(context.sentences(files.test), most, context.seed, "samples")
    return Entities(context.sentences(files.train), context.sentences(files.dev or files.test), context.tokenizer,
                    context.model.config, max_samples=most, seed=context.seed, test=test), files.name


def _questions(paths: list[Any]) -> tuple[list[Question], list[Question], list[str], str]:
    """Questions to train and to measure on, with no context in both; notes; and a name."""
    first, second = question_files(paths)
    given, lost = load_questions(first)
    notes = [f"{first.name}: {lost:,} questions were left out, because the answer is not in the text."] if lost else []
    if second is None:
        contexts = list(dict.fromkeys(question.context for question in given))
        asked_about = set(contexts[::_DEV_SHARE])
        if len(contexts) < 2:
            raise DataError(f"{first} has only one context, so it cannot be split into two sets.")
        dev = [question for question in given if question.context in asked_about]
        train = [question for question in given if question.context not in asked_about]
        return train, dev, [*notes, f"Every fifth context of {first.name} was used to measure."], first.stem
    dev, lost = load_questions(second)
    there = {question.context for question in dev}
    train = [question for question in given if question.context not in there]
    if lost:
        notes.append(f"{second.name}: {lost:,} questions were left out, because the answer is not in the text.")
    if len(train) < len(given):
        notes.append(f"{len(given) - len(train):,} training questions were left out, because their texts are also "
                     "measured on.")
    if not train:
        raise DataError(f"All texts of {first} are also in {second}, so there is nothing to train on.")
    notes.append(f"Trained on {first.name}, measured on {second.name}.")
    others = [path.name for path in paths if path not in (first, second)]
    return train, dev, notes + ([f"Not used: {', '.join(others)}."] if others else []), second.stem


def _config(context: EvaluationContext) -> FinetuneConfig:
    rate = usual_learning_rate(context.model)
    return FinetuneConfig(epochs=context.sizes.epochs, learning_rate=rate, threads=context.threads,
                          recompute=rate < 1e-4)          # the activations of a large model would need too much memory


def _run(context: EvaluationContext, task: Task[Any], name: str, *, alone: bool = False,
         model: MiniBERT | None = None) -> tuple[TaskResult, TaskModel]:
    def announce(what: str) -> Callable[[Progress], None]:
        return lambda progress: context.report(f"{name}, {what}", progress.step, progress.total)

    seeds = range(context.seed, context.seed + (1 if alone else context.sizes.runs))
    return run_task(task, model or context.model, _config(context), seeds=seeds, random_init=not alone,
                    shares=() if alone else context.sizes.shares, announce=announce)


def _row(found: TaskResult, name: str, trials: int) -> SummaryRow:
    random = found.from_random.get(found.main)
    spread = with_interval if found.main in _SHARES else (lambda figure, trials: figure)
    return SummaryRow(f"{_NAMES.get(found.main, found.main)}, {name}", spread(found.mean[found.main], trials),
                      found.baselines, None if random is None else spread(over_seeds(random), trials),
                      sample=f"{found.notes['train']:,} examples to train, {found.notes['dev']:,} to stop "
                      + (f"by, {found.measured:,} to test" if found.measured_on == "test" else "and to measure by"),
                      better=HIGHER)


def _notes(found: TaskResult) -> list[str]:
    counted = [f"{name}: {value:,}" if isinstance(value, int) else f"{name}: {value:.1%}"
               for name, value in found.notes.items() if value and name not in ("train", "dev", "test")]
    return counted if found.measured_on == "test" else [*counted, ONE_SET]


# -------------------------------------------------------------------- forgetting


def forgetting(context: EvaluationContext) -> PartResult:
    """Masked accuracy after fine-tuning, and accuracy on a first task after fine-tuning on a second."""
    topic, first = next(((name, task) for name, task in _suited(context)[0].items()
                         if isinstance(task, Classification)), ("", None))
    if first is None:
        raise DataError("No folder has texts with one label each, so forgetting of a first task is not measured.")
    batches = sample(context)[: _FEW // 8]
    tuned: list[TaskModel] = []

    def learn(model: MiniBERT) -> MiniBERT:
        tuned.append(_run(context, first, topic, alone=True, model=model)[1])
        return tuned[-1].encoder()

    def fills(model: MiniBERT) -> float:
        found = predicted(context, model, batches, "masks")
        measured.append(accuracy(found, batches))
        return measured[-1].mean

    measured: list[Interval] = []
    masks = measure_catastrophic_forgetting(context.model, {"masked accuracy": fills}, [learn])
    most = int(context.frequencies.counts.argmax())
    tokens = [token for batch in batches for token in batch.target_ids[batch.mask_positions].tolist()]
    rows = [SummaryRow(f"masked accuracy after {topic}", measured[1],
                       {"before": measured[0], "most frequent token": tokens.count(most) / len(tokens)},
                       sample=f"{len(tokens):,} masked tokens")]
    details = {"masked": masks.to_dict()}
    if context.tasks.entities is None:
        return PartResult(rows, details, ["There is no second task, so forgetting of the first task is not measured."])
    second, name = _entities(context)
    learned = tuned[0]

    def knows(model: MiniBERT) -> float:
        with_head = TaskModel(model, learned.head_name, first.outputs)
        for spec in learned.task.layout():
            with_head.params[spec.name][...] = learned.params[spec.name]
        with workers(context.threads) as team:
            figures = first.figures(with_head, team)
        return figures["accuracy"]

    old = measure_catastrophic_forgetting(learned.encoder(), {"accuracy": knows}, [
        lambda model: _run(context, second, name, alone=True, model=model)[1].encoder()])
    count = first.notes["test" if first.has_test else "dev"]
    rows.append(SummaryRow(f"{topic} accuracy after {name}", wilson_interval(old.after["accuracy"] * count, count),
                           {"before": wilson_interval(old.before["accuracy"] * count, count),
                            "majority": first.majority("accuracy")},
                           sample=f"{count:,} texts"))
    return PartResult(rows, {**details, "first_task": old.to_dict()}, [
        f"Fine-tuned on {topic}, then on the entities of {name}, with one seed; the head of the first task is "
        "evaluated on the encoder after the second."])
