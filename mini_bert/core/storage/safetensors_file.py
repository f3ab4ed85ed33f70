"""safetensors files: written without a second copy of the numbers in memory, and verified when they are read.

    8 bytes            the header's length, little-endian
    header             JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [from, to]}, ...}
    data               all arrays in that order, little-endian

What we write has a digest of its arrays in the header's metadata. Files from elsewhere have none, and open as well.
Parsing is the safetensors package's, which checks what it is given.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import CheckpointError
from ...readers import read_bytes, require_file
from ..arrays import Array
from .digests import DIGEST, tensors_digest

_LARGEST = 1 << 36                    # bytes of a file of weights that is read whole
_KINDS = {"f2": "F16", "f4": "F32", "f8": "F64"}


def safetensors_chunks(tensors: Mapping[str, Array], metadata: Mapping[str, str] | None = None,
                       ) -> Iterator[bytes | memoryview]:
    """The bytes of a file with these arrays, one array at a time."""
    header: dict[str, object] = {"__metadata__": {**(metadata or {}), DIGEST: tensors_digest(tensors)}}
    place = 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": _KINDS[tensor.dtype.str[1:]], "shape": list(tensor.shape),
                        "data_offsets": [place, place + tensor.nbytes]}
        place += tensor.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)               # the data begins at a multiple of eight
    yield len(text).to_bytes(8, "little")
    yield text
    for tensor in tensors.values():
        little = np.ascontiguousarray(tensor, tensor.dtype.newbyteorder("<"))
        yield little.reshape(-1).view(np.uint8).data


def read_tensors(path: Path) -> tuple[dict[str, Array], dict[str, str]]:
    """The arrays of a file and its metadata; refused if the file has changed since we wrote it."""
    from safetensors import SafetensorError, deserialize, safe_open

    tensors: dict[str, Array]
    require_file(path, CheckpointError)
    try:
        with safe_open(path, framework="np") as file:
            metadata: dict[str, str] = file.metadata() or {}
            names = list(file.keys())
            if any(file.get_slice(name).get_dtype() == "BF16" for name in names):
                raw: list[tuple[str, dict[str, Any]]] = deserialize(  # type: ignore[no-untyped-call]
                    read_bytes(path, CheckpointError, largest=_LARGEST))
                tensors = {name: _decode(view["dtype"], view["data"]).reshape(view["shape"]) for name, view in raw}
                metadata = {}
            else:
                tensors = {name: file.get_tensor(name) for name in names}
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path} is not a readable safetensors file: {error}.") from None
    if DIGEST in metadata and metadata[DIGEST] != tensors_digest(tensors):
        raise changed(path)
    return tensors, metadata


def read_metadata(path: Path) -> dict[str, str]:
    """The metadata alone; nothing is verified."""
    from safetensors import SafetensorError, safe_open

    require_file(path, CheckpointError)
    try:
        with safe_open(path, framework="np") as file:
            return file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path} is not a readable safetensors file: {error}.") from None


def changed(path: Path) -> CheckpointError:
    return CheckpointError(f"{path} has changed since it was written: its digest differs.")


def _decode(kind: str, data: bytes) -> Array:
    """The numbers in `data`, little-endian and of a kind such as F32, I64 or BF16."""
    if kind == "BF16":        # NumPy has none: its sixteen bits are the upper half of a float32
        return (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32)
    return np.frombuffer(data, f"<{kind[0].lower()}{int(kind[1:]) // 8}")
