"""A fine-tuned model in a directory: the encoder like any model, and next to it the head and labels of the task.

    config.json, model.safetensors, vocab.txt, ...     the encoder, which mini_bert.load can load
    task.json                                          the task, its head and its labels, and the plugins it needs
    task.safetensors                                   the parameters of the head
"""

import json
from contextlib import AbstractContextManager, ExitStack
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...core.model import MiniBERT
from ...core.modules.heads.tasks import Answers
from ...core.params import ParamSpec
from ...core.storage.digests import DIGEST, json_digest
from ...core.storage.model_files import CONFIG
from ...core.storage.plugin_words import PLUGINS, plugins_of, require_plugins
from ...core.storage.safetensors_file import read_metadata, read_tensors, safetensors_chunks
from ...core.storage.weight_files import WEIGHTS
from ...core.task_model import TaskModel, open_model
from ...errors import CheckpointError, ConfigError
from ...files import Claim, claimed, write_files
from ...inference.inputs import require_vocabulary
from ...readers import read_json
from ...text.opening import load_tokenizer, tokenizer_file_names
from ...text.tokenizer import Tokenizer

DESCRIPTION, HEAD = "task.json", "task.safetensors"
_FILES = {DESCRIPTION, HEAD, CONFIG, WEIGHTS, *tokenizer_file_names()}
_MOST_OUTPUTS = 1_000_000
_TASKS = {Answers.SEQUENCE: "classification", Answers.TOKENS: "ner", Answers.SPAN: "qa"}     # by what the head chooses
_OF_TASK, _OF_ENCODER = "task_digest", "encoder_digest"       # in the head's metadata: what it belongs to


class SavedTask(NamedTuple):
    """A loaded task model."""

    model: TaskModel
    tokenizer: Tokenizer
    task: str
    labels: list[str]
    pairs: bool | None = False        # the input is a pair of texts; None if nobody has said so
    columns: tuple[str, ...] = ()     # of text, in the table that it learned from


def save_task(directory: str | PathLike[str], model: TaskModel, tokenizer: Tokenizer, task: str,
              labels: list[str], about: dict[str, Any], *, pairs: bool = False, claim: Claim | None = None) -> None:
    """Write a task model; an earlier one is replaced when the new one is whole. `claim` is one on the directory."""
    target = Path(directory)
    require_replaceable(target)
    encoder = model.encoder()
    encoder.vocab_digest = tokenizer.vocabulary.digest()          # of the vocabulary that it was fine-tuned with
    head = {spec.name: model.params[spec.name] for spec in _own(model)}
    description = json.loads(json.dumps({"task": task, "head": model.head_name, "outputs": model.task.outputs,
                                         "labels": labels, "pairs": pairs, "loss": model.loss_name,
                                         **plugins_of([("task_head", model.head_name), ("task_loss", model.loss_name)]),
                                         **about}))
    with ExitStack() as stack:
        held = stack.enter_context(claim_task(target)) if claim is None else claim
        folder = stack.enter_context(held.filled(require_replaceable))
        encoder.save(folder)
        tokenizer.save(folder)
        together = {_OF_TASK: json_digest(description), _OF_ENCODER: read_metadata(folder / WEIGHTS)[DIGEST]}
        write_files(folder, {HEAD: safetensors_chunks(head, together),
                             DESCRIPTION: (json.dumps(description, indent=2) + "\n").encode()})


def claim_task(directory: Path) -> AbstractContextManager[Claim]:
    """Claim the directory of a task model."""
    return claimed(directory, CheckpointError(f"Another process is writing {directory}."))


def require_replaceable(directory: Path) -> None:
    """Refuse a directory that has anything but a task model in it."""
    names = {file.name for file in directory.iterdir()} if directory.is_dir() else set()
    if names and DESCRIPTION not in names:
        raise CheckpointError(f"{directory} is not empty and does not contain a task model; choose another directory.")
    if others := sorted(names - _FILES):
        raise CheckpointError(f"{directory} has files that are not a task model's, such as {others[0]}, and is not "
                              "replaced; choose another directory.")


def load_task(directory: str | PathLike[str]) -> SavedTask:
    """Load a model that `save_task` wrote, or one whose own files have the head of a task, as those of transformers."""
    folder = Path(directory)
    if not folder.is_dir():
        raise CheckpointError(f"There is no directory {folder}; create a task model with mini-bert finetune.")
    if not (folder / DESCRIPTION).exists() and (folder / CONFIG).exists():
        return _with_own_head(folder)
    try:
        description = read_json(folder / DESCRIPTION, CheckpointError, absent=f"{folder} is not a task model, as it "
                                f"has no {DESCRIPTION}; create one with mini-bert finetune.")
        task, head, outputs, labels, loss = _described(description)
    except ValueError as error:
        raise CheckpointError(f"{folder / DESCRIPTION} cannot be read: {error}.") from None
    require_plugins(description.get(PLUGINS, {}), str(folder), DESCRIPTION)
    encoder, tokenizer = MiniBERT.load(folder), load_tokenizer(folder)
    try:
        model = TaskModel(encoder, head, outputs, loss=loss)
    except ConfigError as error:
        raise CheckpointError(f"{folder / DESCRIPTION} cannot be used: {error}") from None
    if model.task.answers is not Answers.SPAN and len(labels) != outputs:
        raise CheckpointError(f"{folder / DESCRIPTION} cannot be read: there are {len(labels)} labels for {outputs} "
                              "outputs.")
    require_vocabulary(model, tokenizer)
    tensors, metadata = read_tensors(folder / HEAD)
    if metadata.get(_OF_TASK, json_digest(description)) != json_digest(description):
        raise CheckpointError(f"{folder / DESCRIPTION} is not the one that {HEAD} was saved with: one of them has "
                              "changed.")
    own = read_metadata(folder / WEIGHTS).get(DIGEST)
    if metadata.get(_OF_ENCODER, own) != own:
        raise CheckpointError(f"{folder / WEIGHTS} is not the encoder that {HEAD} was trained with.")
    for spec in _own(model):
        found = tensors.get(spec.name)
        if found is None or found.shape != spec.shape or not np.isfinite(found).all():
            raise CheckpointError(f"{folder / HEAD} does not fit {DESCRIPTION}: {spec.name} is missing, damaged or of "
                                  "another shape.")
        model.params[spec.name][...] = found
    pairs = bool(description.get("pairs", task == "pair"))        # older files only have the name of the task
    columns = description.get("columns")
    known = isinstance(columns, list) and all(isinstance(name, str) for name in columns)
    return SavedTask(model, tokenizer, task, labels, pairs, tuple(columns) if known else ())


def _with_own_head(folder: Path) -> SavedTask:
    model = open_model(folder)
    if not isinstance(model, TaskModel):
        raise CheckpointError(f"{folder} is not a task model, as it has no {DESCRIPTION}, and its own files have "
                              "no head of a task; create one with mini-bert finetune.")
    tokenizer = load_tokenizer(folder)
    require_vocabulary(model, tokenizer)
    return task_of(model, tokenizer)


def task_of(model: TaskModel, tokenizer: Tokenizer) -> SavedTask:
    """The task of a model whose own files have its head."""
    return SavedTask(model, tokenizer, _TASKS[model.task.answers], list(model.labels), None)


def _own(model: TaskModel) -> list[ParamSpec]:
    """The parameters of the head; what it ties to the encoder is saved there."""
    return [item for item in model.task.layout() if isinstance(item, ParamSpec)]


def _described(description: Any) -> tuple[str, str, int, list[str], str]:
    """The task, its head, the number of outputs, the labels and the loss; ValueError if they are not valid."""
    task, head, outputs, labels = (description.get(key) for key in ("task", "head", "outputs", "labels"))
    loss = description.get("loss", "cross_entropy")       # older files do not say
    if not isinstance(task, str) or not isinstance(head, str) or not isinstance(loss, str):
        raise ValueError("task, head and loss must be text")
    if type(outputs) is not int or outputs < 1:
        raise ValueError(f"outputs must be a positive integer, not {str(outputs)[:40]}")
    if outputs > _MOST_OUTPUTS:
        raise ValueError(f"outputs must be at most {_MOST_OUTPUTS:,}, not {outputs}")
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise ValueError("labels must be a list of text")
    return task, head, outputs, labels, loss
