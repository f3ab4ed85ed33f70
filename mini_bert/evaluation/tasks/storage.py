"""A fine-tuned model in a directory: the encoder as any model, and beside it the task's head and labels.

    config.json, model.safetensors, vocab.txt, ...     the encoder, which mini_bert.load opens
    task.json                                          the task, its head and its labels
    task.safetensors                                   the head's parameters
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


class Saved(NamedTuple):
    """A model for a task, ready to be used."""

    model: TaskModel
    tokenizer: WordPieceTokenizer
    task: str
    labels: list[str]
    pairs: bool = False       # whether it takes two texts


def save_task(directory: str | PathLike[str], model: TaskModel, tokenizer: WordPieceTokenizer, task: str,
              labels: list[str], about: dict[str, Any], *, pairs: bool = False) -> None:
    """Write all of it; task.json, without which it is no task's directory, comes last, and an old one goes first."""
    folder = Path(directory)
    (folder / DESCRIPTION).unlink(missing_ok=True)
    encoder = model.encoder()
    encoder.vocab_digest = tokenizer.vocabulary.digest()          # its ids have been learned
    encoder.save(folder)
    tokenizer.save(folder)
    head = {spec.name: model.params[spec.name] for spec in model.task.layout()}
    description = {"task": task, "head": model.head_name, "outputs": model.task.outputs, "labels": labels,
                   "pairs": pairs, **about}
    write_files(folder, {HEAD: safetensors_chunks(head),
                         DESCRIPTION: (json.dumps(description, indent=2, ensure_ascii=False) + "\n").encode()})


def load_task(directory: str | PathLike[str]) -> Saved:
    """The model that `save_task` wrote."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    folder = Path(directory)
    if not folder.is_dir():
        raise CheckpointError(f"There is no directory {folder}; make a model of a task with mini-bert finetune.")
    try:
        description = json.loads((folder / DESCRIPTION).read_bytes())
        task, head, outputs, labels = _described(description)
    except FileNotFoundError:
        raise CheckpointError(f"{folder} is not a model of a task: it has no {DESCRIPTION}. Make one with "
                              "mini-bert finetune.") from None
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
    pairs = bool(description.get("pairs", task == "pair"))        # older files have it in the task's name alone
    return Saved(model, tokenizer, task, labels, pairs)


def _described(description: Any) -> tuple[str, str, int, list[str]]:
    """The task, its head, the number of the head's outputs and their labels; ValueError for what cannot be."""
    task, head, outputs, labels = (description[key] for key in ("task", "head", "outputs", "labels"))
    if not isinstance(task, str) or not isinstance(head, str):
        raise ValueError("its task and its head must be names")
    if type(outputs) is not int or outputs < 1:
        raise ValueError(f"its outputs must be a whole number above zero, not {str(outputs)[:40]}")
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise ValueError("its labels must be a list of names")
    if head not in words("task_head"):
        raise ValueError(f"there is no head {head[:40]!r}; there are {', '.join(words('task_head'))}")
    if find("task_head", head).named.labelled and len(labels) != outputs:
        raise ValueError(f"it has {len(labels)} labels for {outputs} outputs")
    return task, head, outputs, labels
