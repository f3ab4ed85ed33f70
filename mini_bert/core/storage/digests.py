"""Digests of arrays and of JSON, by which a file that has changed since it was written is noticed.

They guard against damage, not against forgery. A digest of all bytes would take longer than reading them, so what is
hashed is the sums of the numbers, read as 64-bit integers, of each kilobyte. A change of one bit changes a sum; zeroed,
shifted or exchanged pieces change many. Only numbers that change places within a kilobyte are not noticed.
"""

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import numpy as np

from ..arrays import Array

DIGEST = "digest"                         # in the metadata of a safetensors file: of its arrays
_COLUMNS = 128                            # 64-bit integers in a sum


def tensors_digest(tensors: Mapping[str, Array]) -> str:
    """A digest of the names, kinds, shapes and values of arrays, in any order."""
    digest = TensorsDigest()
    for name in sorted(tensors):
        digest.add(name, tensors[name])
    return digest.result()


class TensorsDigest:
    """The digest of arrays that come one after the other, sorted by name.

    A reader that adds each array as soon as it has read it finds the numbers in the processor's cache.
    """

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=16)

    def add(self, name: str, tensor: Array) -> None:
        self._hash.update(f"{name} {tensor.dtype.str[1:]} {tensor.shape}\n".encode("utf-8", "surrogatepass"))
        data = np.ascontiguousarray(tensor, tensor.dtype.newbyteorder("<")).reshape(-1).view(np.uint8)
        rows = len(data) // (8 * _COLUMNS)
        table = data[: rows * 8 * _COLUMNS].view("<u8").reshape(rows, _COLUMNS)
        self._hash.update(np.add.reduce(table, axis=1).data)
        self._hash.update(data[rows * 8 * _COLUMNS :].data)

    def result(self) -> str:
        return self._hash.hexdigest()


def json_digest(content: Any) -> str:
    """A digest of JSON data, however it is spaced and ordered."""
    return blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()
