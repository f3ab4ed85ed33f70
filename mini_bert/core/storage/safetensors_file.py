"""safetensors files: written without a second copy of the numbers in memory, and verified when they are read.

    8 bytes            the header's length, little-endian
    header             JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [from, to]}, ...}
    data               all arrays in that order, little-endian

What we write has a digest of its arrays in the header's metadata. Files from elsewhere have none, and open as well.
Parsing is the safetensors package's, which checks what it is given.
"""

import json
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import CheckpointError
from ...readers import open_file, require_file
from ..arrays import Array
from ..precision.bfloat16 import widened
from .digests import DIGEST, TensorsDigest, tensors_digest

NARROW = "weights"                    # in the metadata, and in config.json: what the matrices are kept as
LARGEST_WEIGHTS = 1 << 36             # bytes of a file
_KINDS = {"f2": "F16", "f4": "F32", "f8": "F64", "u1": "U8", "u2": "U16", "u4": "U32", "u8": "U64", "i1": "I8",
          "i2": "I16", "i4": "I32", "i8": "I64", "b1": "BOOL"}


def safetensors_chunks(tensors: Mapping[str, Array], metadata: Mapping[str, str] | None = None,
                       ) -> Iterator[bytes | memoryview]:
    """The bytes of a file with these arrays, one array at a time. Of weights in bf16, uint16 are the halves."""
    kinds = _KINDS | {"u2": "BF16"} if (metadata or {}).get(NARROW) == "bf16" else _KINDS
    header: dict[str, object] = {"__metadata__": {**(metadata or {}), DIGEST: tensors_digest(tensors)}}
    place = 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": kinds[tensor.dtype.str[1:]], "shape": list(tensor.shape),
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
    from safetensors import SafetensorError, safe_open

    tensors: dict[str, Array]
    require_file(path, CheckpointError)
    try:
        with safe_open(path, framework="np") as file:
            metadata: dict[str, str] = file.metadata() or {}
            names = list(file.keys())
            halves = {name for name in names if file.get_slice(name).get_dtype() == "BF16"}
            tensors, digest = {}, TensorsDigest()
            for name in sorted(set(names) - halves):
                tensors[name] = file.get_tensor(name)
                if DIGEST in metadata:
                    digest.add(name, tensors[name])
        if halves and metadata.get(NARROW) == "bf16":                # our own: they stay halves
            tensors |= _read_halves(path, halves)
            digest = _digest_of(tensors)
        elif halves:                      # such a file was converted, and its digest is another's
            tensors |= {name: widened(half) for name, half in _read_halves(path, halves).items()}
            metadata = {}
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path} is not a readable safetensors file: {error}.") from None
    if metadata.get(DIGEST, digest.result()) != digest.result():
        raise changed(path)
    return tensors, metadata


def _digest_of(tensors: Mapping[str, Array]) -> TensorsDigest:
    digest = TensorsDigest()
    for name in sorted(tensors):
        digest.add(name, tensors[name])
    return digest


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


def _read_halves(path: Path, names: Set[str]) -> dict[str, Any]:
    """These arrays of a file that has been checked: read one after the other, without the rest of the file."""
    with open_file(path, CheckpointError) as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        tensors = {}
        for name in names:
            begin, end = header[name]["data_offsets"]
            file.seek(8 + length + begin)
            tensors[name] = np.frombuffer(file.read(end - begin), "<u2").reshape(header[name]["shape"])
        return tensors
