"""Checkpoints: directories that are either whole or not there.

    checkpoints/step-N/    config.json, model.safetensors, tokenizer files: a model that `mini_bert.load` opens
                           optimiser.safetensors: the optimiser's state arrays
                           objective.safetensors: parameters that are not the model's, and arrays of the objective's
                           state, where there are any
                           state.json: where the run stands, and the rest of the objective's state
                           checksums.json: of each of these files, written last

A directory appears when it is whole (files/claims.py). Loading verifies the checksums; a damaged checkpoint is passed
over for the one before it.

Only what a run has written is ever removed. A checkpoint that is a link, or has a file of somebody else in it, stays;
where one is replaced by a new one of the same name, files of somebody else move on to the new one.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt

from ...core.arrays import Array
from ...core.model import MiniBERT
from ...core.storage.checksums import CHECKSUMS, covered, verify, write_checksums
from ...core.storage.model_files import CONFIG
from ...core.storage.safetensors_file import safetensors_chunks
from ...core.storage.weight_files import WEIGHTS
from ...errors import CheckpointError
from ...files import claimed, recover, remove_directory, sync_directory, write_files
from ...readers import read_json, require_file
from ...text.opening import tokenizer_file_names
from ...text.tokenizer import Tokenizer

STATE, OPTIMISER, OBJECTIVE = "state.json", "optimiser.safetensors", "objective.safetensors"
_FILES = {CONFIG, WEIGHTS, STATE, OPTIMISER, OBJECTIVE, CHECKSUMS, *tokenizer_file_names()}

Arrays = Mapping[str, Mapping[str, Array]]        # of further files, by name: OPTIMISER, OBJECTIVE


def write_checkpoint(target: Path, model: MiniBERT, tokenizer: Tokenizer | None, state: dict[str, Any],
                     arrays: Arrays | None = None, dtype: npt.DTypeLike | None = None) -> None:
    """Make the directory `target`; one of that name is replaced when the new one is whole.

    `dtype` is the precision of the model in its file, the model's own unless given.
    """
    require_no_link(target)
    with claimed(target, _busy(target)) as claim, claim.filled(lambda old: _take_along(old, folder)) as folder:
        fill_checkpoint(folder, model, tokenizer, state, arrays, dtype)


def fill_checkpoint(folder: Path, model: MiniBERT, tokenizer: Tokenizer | None, state: dict[str, Any],
                    arrays: Arrays | None = None, dtype: npt.DTypeLike | None = None) -> None:
    """Write the files of a checkpoint into a directory."""
    folder.mkdir(parents=True, exist_ok=True)
    if tokenizer is not None:
        tokenizer.save(folder)
        model.vocab_digest = tokenizer.vocabulary.digest()        # its ids have been learned
    model.save(folder, dtype=dtype)
    try:
        write_files(folder, {STATE: json.dumps(state, indent=2).encode()})
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"The objective's state cannot be written: {error}; state() must give arrays, and values "
                              "that JSON can hold.") from None
    for file, named in (arrays or {}).items():
        if named:
            write_files(folder, {file: safetensors_chunks(named)})
    write_checksums(folder)


def _others(folder: Path) -> list[Path]:
    """What is in a checkpoint's directory that no run has written there."""
    known = _FILES | covered(folder)
    return [path for path in sorted(folder.iterdir()) if path.name not in known or not path.is_file()]


def _take_along(old: Path, new: Path) -> None:
    """Give the new checkpoint the files of somebody else that the old one has, before it takes its place."""
    for path in _others(old):
        if path.is_symlink() or path.is_file():
            shutil.copy2(path, new / path.name, follow_symlinks=False)
        else:
            shutil.copytree(path, new / path.name, symlinks=True)
    sync_directory(new)


def require_no_link(target: Path) -> None:
    """Refuse to replace what a link leads to, which may be anybody's."""
    if target.is_symlink():
        raise CheckpointError(f"{target} is a link, and what it leads to is not replaced; remove the link, or begin a "
                              "new run.")


def _is_ours(path: Path) -> bool:
    """May this checkpoint be removed?"""
    return not path.is_symlink() and not _others(path)


def _busy(target: Path) -> CheckpointError:
    return CheckpointError(f"Another process is writing {target}.")


def verify_checkpoint(directory: Path) -> None:
    """Refuse a checkpoint that is incomplete or has changed since it was written."""
    verify(directory, {CONFIG, WEIGHTS, STATE})


def read_state(directory: Path) -> dict[str, Any]:
    """Where the run stands, as `State.from_json` takes it."""
    state: dict[str, Any] = read_json(directory / STATE, CheckpointError)
    return state


def read_arrays(file: Path, like: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays of a checkpoint's file, among them all of `like`, with their shapes."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    if not like and not file.exists():
        return {}
    try:
        require_file(file, CheckpointError)
        arrays: dict[str, Array] = load_file(file)
    except (OSError, ValueError, SafetensorError) as error:
        raise CheckpointError(f"{file} cannot be read: {error}.") from None
    if any(name not in arrays or arrays[name].shape != array.shape or arrays[name].dtype != array.dtype
           for name, array in like.items()):
        raise CheckpointError(f"{file} does not belong to this model, objective and optimiser.")
    return arrays


def list_checkpoints(folder: Path) -> list[Path]:
    """The checkpoints of a run, the newest first."""
    numbered = [(int(path.name[5:]), path) for path in folder.glob("step-*")
                if path.name[5:].isdecimal() and path.is_dir()]
    return [path for _, path in sorted(numbered, reverse=True)]


def newest_checkpoint(folder: Path) -> tuple[Path | None, list[str]]:
    """The newest whole checkpoint, and why newer ones were passed over."""
    reasons: list[str] = []
    for path in list_checkpoints(folder):
        try:
            verify_checkpoint(path)
            return path, reasons
        except CheckpointError as error:
            reasons.append(str(error))
    return None, reasons


def remove_newer(folder: Path, step: int) -> None:
    """Remove what is in the way of a run that continues from `step`: newer checkpoints, and leftovers."""
    for path in filter(_is_ours, list_checkpoints(folder)):
        if int(path.name[5:]) > step:
            remove_directory(path, _busy(path))
    recover(folder)


def remove_older(folder: Path, keep: int) -> None:
    """Keep the newest `keep` checkpoints, and those that are not only ours."""
    for path in list(filter(_is_ours, list_checkpoints(folder)))[keep:]:
        remove_directory(path, _busy(path))


def require_space(folder: Path, bytes_needed: int) -> None:
    """Refuse to begin where a checkpoint would not fit."""
    free = shutil.disk_usage(folder).free
    if free < bytes_needed:
        raise CheckpointError(f"{folder} has {free / 1e6:,.0f} MB of free space; the run needs "
                              f"{bytes_needed / 1e6:,.0f} MB for its checkpoints.")
