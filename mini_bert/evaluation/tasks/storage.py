"""A fine-tuned model in a directory: the encoder like any model, and next to it the head and labels of the task.

    config.json, model.safetensors, vocab.txt, ...     the encoder, which mini_bert.load can load
    task.json                                          the task, its head and its labels
    task.safetensors                                   the parameters of the head
"""

import json
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...core.model import MiniBERT
from ...core.params import ParamSpec
from ...core.registry import find, words
from ...core.storage.safetensors_file import safetensors_chunks
from ...core.task_model import TaskModel
from ...errors import CheckpointError
from ...files import write_files
from ...inference.inputs import require_vocabulary
from ...text.wordpiece.tokenizer import WordPieceTokenizer

DESCRIPTION, HEAD = "task.json", "task.safetensors"


class SavedTask(NamedTuple):
    """A loaded task model."""

    model: TaskModel
    tokenizer: WordPieceTokenizer
    task: str
    labels: list[str]
    pairs: bool = False       # the input is a pair of texts


def save_task(directory: str | PathLike[str], model: TaskModel, tokenizer: WordPieceTokenizer, task: str,
              labels: list[str], about: dict[str, Any], *, pairs: bool = False) -> None:
    """Write a task model. task.json marks it as complete: an old one is deleted first, the new one written last."""
    folder = Path(directory)
    (folder / DESCRIPTION).unlink(missing_ok=True)
    encoder = model.encoder()
    encoder.vocab_digest = tokenizer.vocabulary.digest()          # of the vocabulary that it was fine-tuned with
    encoder.save(folder)
    tokenizer.save(folder)
    head = {spec.name: model.params[spec.name] for spec in model.task.layout()}
    description = {"task": task, "head": model.head_name, "outputs": model.task.outputs, "labels": labels,
                   "pairs": pairs, **about}
    write_files(folder, {HEAD: safetensors_chunks(head),
                         DESCRIPTION: (json.dumps(description, indent=2, ensure_ascii=False) + "\n").encode()})


def load_task(directory: str | PathLike[str]) -> SavedTask:
    """Load a model that `save_task` wrote."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    folder = Path(directory)
    if not folder.is_dir():
        raise CheckpointError(f"There is no directory {folder}; create a task model with mini-bert finetune.")
    try:
        description = json.loads((folder / DESCRIPTION).read_bytes())
        task, head, outputs, labels = _described(description)
    except FileNotFoundError:
        raise CheckpointError(f"{folder} is not a task model, as it has no {DESCRIPTION}; create one with mini-bert "
                              "finetune.") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{folder / DESCRIPTION} cannot be read: {error}.") from None
    model, tokenizer = TaskModel(MiniBERT.load(folder), head, outputs), WordPieceTokenizer.load(folder)
    require_vocabulary(model, tokenizer)
    try:
        tensors = load_file(folder / HEAD)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{folder / HEAD} cannot be read: {error}.") from None
    for spec in model.task.layout():
        if not isinstance(spec, ParamSpec) or spec.name not in tensors or tensors[spec.name].shape != spec.shape \
                or not np.isfinite(tensors[spec.name]).all():
            raise CheckpointError(f"{folder / HEAD} does not fit {DESCRIPTION}: {spec.name} is missing, damaged or of "
                                  "another shape.")
        model.params[spec.name][...] = tensors[spec.name]
    pairs = bool(description.get("pairs", task == "pair"))        # older files only have the name of the task
    return SavedTask(model, tokenizer, task, labels, pairs)


def _described(description: Any) -> tuple[str, str, int, list[str]]:
    """The task, its head, the number of outputs and the labels; ValueError if they are not valid."""
    task, head, outputs, labels = (description[key] for key in ("task", "head", "outputs", "labels"))
    if not isinstance(task, str) or not isinstance(head, str):
        raise ValueError("task and head must be text")
    if type(outputs) is not int or outputs < 1:
        raise ValueError(f"outputs must be a positive integer, not {str(outputs)[:40]}")
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise ValueError("labels must be a list of text")
    if head not in words("task_head"):
        raise ValueError(f"there is no head {head[:40]!r}; the heads are {', '.join(words('task_head'))}")
    if find("task_head", head).named.labelled and len(labels) != outputs:
        raise ValueError(f"there are {len(labels)} labels for {outputs} outputs")
    return task, head, outputs, labels
