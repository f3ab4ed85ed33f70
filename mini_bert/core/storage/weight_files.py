"""The arrays of a model's directory, in whichever file they are; the first of these that is there is read.

    model.safetensors                    ours, and what transformers writes now
    model.safetensors.index.json         the same in several files (shards): {"weight_map": {tensor: file, ...}}
    pytorch_model.bin                    what transformers wrote before; only tensors are read, and nothing is run
    pytorch_model.bin.index.json         the same in shards
"""

from collections.abc import Callable
from pathlib import Path

from ...errors import CheckpointError
from ...readers import read_json, shown
from ..arrays import Array
from .pytorch_file import read_pytorch
from .safetensors_file import read_tensors

WEIGHTS, PYTORCH = "model.safetensors", "pytorch_model.bin"
_OTHERS = {".bin", ".pt", ".pth", ".pkl", ".ckpt", ".h5", ".msgpack", ".onnx"}


def read_weights(directory: Path) -> tuple[dict[str, Array], dict[str, str]]:
    """The arrays, and the metadata of their file if it has any."""
    for name, read in ((WEIGHTS, read_tensors), (PYTORCH, _read_pytorch)):
        if (directory / name).exists():
            return read(directory / name)
        if (directory / f"{name}.index.json").exists():
            return _read_shards(directory / f"{name}.index.json", read), {}
    others = sorted(file.name for file in directory.iterdir() if file.suffix in _OTHERS)
    hint = f" It has {others[0][:100]}, a format that is not opened: save the model as safetensors." if others else ""
    raise CheckpointError(f"{shown(directory)} has no {WEIGHTS} and no {PYTORCH}.{hint}")


def _read_pytorch(path: Path) -> tuple[dict[str, Array], dict[str, str]]:
    return read_pytorch(path), {}


def _read_shards(index: Path, read: Callable[[Path], tuple[dict[str, Array], dict[str, str]]]) -> dict[str, Array]:
    """The arrays of all files that an index names, each of them once and where the index says."""
    files = read_json(index, CheckpointError).get("weight_map")
    if not isinstance(files, dict) or not files or not all(isinstance(file, str) for file in files.values()):
        raise CheckpointError(f"{shown(index)} has no valid weight_map: the name of a file for each tensor.")
    for file in sorted(set(files.values())):
        if Path(file).name != file or file in ("", "..") or "\\" in file:
            raise CheckpointError(f"{shown(index)} has a weight_map with {file[:100]!r}, which is not a file of its "
                                  "directory.")
        if not _is_there(index.parent / file):
            raise CheckpointError(f"{shown(index)} names the shard {file[:100]!r}, which is missing.")
    found: dict[str, str] = {}
    tensors: dict[str, Array] = {}
    for file in sorted(set(files.values())):
        for name, tensor in read(index.parent / file)[0].items():
            if name in found:
                raise CheckpointError(f"{shown(index.parent)} has {name[:100]!r} in two shards, {found[name][:100]} "
                                      f"and {file[:100]}.")
            found[name], tensors[name] = file, tensor
    for name, file in files.items():
        if found.get(name) != file:
            raise CheckpointError(f"{shown(index.parent / file)} has no {name[:100]!r}, which {index.name} says is "
                                  "there.")
    return tensors


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):             # a name that no file can have
        return False
