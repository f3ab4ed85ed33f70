"""Checkpoints: directories that are either whole or not there.

    checkpoints/step-N/    config.json, model.safetensors, tokenizer files: a model that `mini_bert.load` opens
                           optimiser.safetensors: the optimiser's state arrays
                           state.json: where the run stands
                           checksums.json: of each of these files, written last

A directory is filled under another name, synced and renamed. Loading verifies the checksums; a damaged
checkpoint is passed over for the one before it.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...core.arrays import Array
from ...core.model import MiniBERT
from ...core.storage.checksums import verify, write_checksums
from ...core.storage.model_files import CONFIG, WEIGHTS
from ...core.storage.safetensors_file import safetensors_chunks
from ...errors import CheckpointError
from ...files import replace_directory, write_files
from ...text.wordpiece.tokenizer import WordPieceTokenizer

STATE, OPTIMISER = "state.json", "optimiser.safetensors"


def write_checkpoint(target: Path, model: MiniBERT, tokenizer: WordPieceTokenizer | None,
                     state: dict[str, Any], optimiser: Mapping[str, Array] | None = None) -> None:
    """Make the directory `target`; one of that name is replaced when the new one is whole."""
    partial = target.parent / f".{target.name}.partial"
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        if tokenizer is not None:
            tokenizer.save(partial)
            model.vocab_digest = tokenizer.vocabulary.digest()        # its ids have been learned
        model.save(partial)
        write_files(partial, {STATE: json.dumps(state, indent=2).encode()})
        if optimiser is not None:
            write_files(partial, {OPTIMISER: safetensors_chunks(optimiser)})
        write_checksums(partial)
        replace_directory(partial, target)
    except OSError as error:
        raise CheckpointError(f"Cannot write {target}: {error.strerror or error}.") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def verify_checkpoint(directory: Path) -> None:
    """Refuse a checkpoint that is incomplete or has changed since it was written."""
    verify(directory, {CONFIG, WEIGHTS, STATE})


def read_state(directory: Path) -> dict[str, Any]:
    try:
        state = json.loads((directory / STATE).read_bytes())
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{directory / STATE} cannot be read: {error}.") from None
    if not isinstance(state, dict):
        raise CheckpointError(f"{directory / STATE} is not the state of a run: it is no object.")
    return state


def read_optimiser(directory: Path, like: Mapping[str, Array]) -> dict[str, Array]:
    """The state arrays of the optimiser, with the names and shapes of `like`."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        state: dict[str, Array] = load_file(directory / OPTIMISER)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{directory / OPTIMISER} cannot be read: {error}.") from None
    if any(name not in state or state[name].shape != array.shape or state[name].dtype != array.dtype
           for name, array in like.items()):
        raise CheckpointError(f"{directory / OPTIMISER} is not of this model and optimiser.")
    return state


def list_checkpoints(folder: Path) -> list[Path]:
    """The checkpoints of a run, the newest first."""
    numbered = [(int(path.name[5:]), path) for path in folder.glob("step-*") if path.name[5:].isdecimal()]
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


def remove_newer(folder: Path, checkpoint: Path) -> None:
    """Remove what stands in the way of a run that goes on from `checkpoint`: newer, damaged ones, and leftovers."""
    newer = list_checkpoints(folder)
    for path in (*newer[: newer.index(checkpoint)], *folder.glob(".step-*")):
        shutil.rmtree(path, ignore_errors=True)


def remove_older(folder: Path, keep: int) -> None:
    """Keep the newest `keep` checkpoints. One that is going loses its name first."""
    for path in list_checkpoints(folder)[keep:]:
        going = folder / f".{path.name}.removed"
        shutil.rmtree(going, ignore_errors=True)
        path.rename(going)
        shutil.rmtree(going, ignore_errors=True)


def require_space(folder: Path, bytes_needed: int) -> None:
    """Refuse to begin where a checkpoint would not fit."""
    free = shutil.disk_usage(folder).free
    if free < bytes_needed:
        raise CheckpointError(f"{folder} has {free / 1e6:,.0f} MB of free space; the run needs "
                              f"{bytes_needed / 1e6:,.0f} MB for its checkpoints.")


def require_writable(folder: Path) -> None:
    """Refuse a folder that cannot be written before work is done for it."""
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir():
        raise CheckpointError(f"{folder} cannot be a directory: {existing} is a file.")
    try:
        with TemporaryDirectory(dir=existing, prefix=".mini-bert-"):          # asking for rights is not enough for root
            pass
    except OSError as error:
        raise CheckpointError(f"Cannot write to {existing}: {error.strerror or error}; choose another "
                              "directory.") from None
