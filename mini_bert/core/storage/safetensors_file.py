"""Writing safetensors without a second copy of the numbers in memory.

    8 bytes            the header's length, little-endian
    header             JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [from, to]}, ...}
    data               all arrays in that order, little-endian

Reading is the safetensors package's, which checks what it is given.
"""

import json
from collections.abc import Iterator, Mapping

import numpy as np

from ..arrays import Array

_KINDS = {"f2": "F16", "f4": "F32", "f8": "F64"}


def safetensors_chunks(tensors: Mapping[str, Array], metadata: Mapping[str, str] | None = None,
                       ) -> Iterator[bytes | memoryview]:
    """The bytes of a file with these arrays, one array at a time."""
    header: dict[str, object] = {"__metadata__": dict(metadata)} if metadata else {}
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
