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
from ...core.safetensors_file import safetensors_chunks
from ...core.task_model import TaskModel
from ...errors import CheckpointError
from ...files import write_files
from ...text.tokenizer import WordPieceTokenizer

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
    """Write all of it; task.json, without which it is no task's directory, comes last."""
    folder = Path(directory)
    model.encoder().save(folder)
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
        task, head, outputs, labels = (description[key] for key in ("task", "head", "outputs", "labels"))
    except FileNotFoundError:
        raise CheckpointError(f"{folder} is not a model of a task: it has no {DESCRIPTION}. Make one with "
                              "mini-bert finetune.") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{folder / DESCRIPTION} cannot be read: {error}.") from None
    model = TaskModel(MiniBERT.load(folder), str(head), int(outputs))
    try:
        tensors = load_file(folder / HEAD)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{folder / HEAD} cannot be read: {error}.") from None
    for spec in model.task.layout():
        if spec.name not in tensors or tensors[spec.name].shape != spec.shape \
                or not np.isfinite(tensors[spec.name]).all():
            raise CheckpointError(f"{folder / HEAD} does not fit {DESCRIPTION}: {spec.name} is missing, damaged or of "
                                  "another shape.")
        model.params[spec.name][...] = tensors[spec.name]
    pairs = bool(description.get("pairs", task == "pair"))        # older files have it in the task's name alone
    return Saved(model, WordPieceTokenizer.load(folder), str(task), [str(label) for label in labels], pairs)
