"""A file of vectors in float16, each with a checksum: rows that are whole can be read, all others are missing.

A row is written once and never changes. One that was half written when the process ended, or was damaged since, has a
wrong checksum, counts as missing, and is computed again. Two processes that compute the same rows write the same bytes.
"""

import os
from pathlib import Path
from threading import Lock
from zlib import crc32

import numpy as np
import numpy.typing as npt

from ...core.arrays import Array, BoolArray, IntArray
from ...errors import CheckpointError

_AT_ONCE = 4096               # rows


class VectorFile:
    """Rows of `width` numbers at `path`, which need not exist."""

    def __init__(self, path: Path, width: int):
        self.path = path
        self.row = np.dtype([("vector", "<f2", (width,)), ("sum", "<u4")])
        self._lock = Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644), "r+b",
                                   buffering=0)
        except OSError as error:
            raise self._failed(error) from None

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()

    def write(self, first: int, vectors: npt.NDArray[np.float32]) -> None:
        """Rows from number `first` on."""
        rows = np.zeros(len(vectors), self.row)
        rows["vector"] = vectors
        rows["sum"] = [crc32(row.tobytes()) for row in rows["vector"]]
        try:
            with self._lock:
                self._file.seek(first * self.row.itemsize)
                left = memoryview(rows.tobytes())
                while left:
                    left = left[self._file.write(left) :]
        except OSError as error:
            raise self._failed(error) from None

    def present(self, count: int) -> BoolArray:
        """Which of the first `count` rows are whole."""
        found = np.zeros(count, bool)
        for first in range(0, count, _AT_ONCE):
            rows = self._rows(first, min(_AT_ONCE, count - first))
            found[first : first + len(rows)] = _whole(rows)
        return found

    def read(self, numbers: IntArray) -> Array:
        """The rows with these numbers (N, width), in float32."""
        result = np.empty((len(numbers), self.row["vector"].shape[0]), np.float32)
        for place in np.argsort(numbers, kind="stable").tolist():
            rows = self._rows(int(numbers[place]), 1)
            if not len(rows) or not _whole(rows)[0]:
                raise CheckpointError(f"{self.path} has changed while it was in use: vector {numbers[place]} is "
                                      "damaged; delete the file, and start again.")
            result[place] = rows["vector"][0]
        return result

    def _rows(self, first: int, count: int) -> npt.NDArray[np.void]:
        """Rows as they are in the file; fewer if it ends before."""
        try:
            with self._lock:
                self._file.seek(first * self.row.itemsize)
                data = self._file.read(count * self.row.itemsize)
        except OSError as error:
            raise self._failed(error) from None
        return np.frombuffer(data[: len(data) // self.row.itemsize * self.row.itemsize], self.row)

    def _failed(self, error: OSError) -> CheckpointError:
        return CheckpointError(f"The cache {self.path} cannot be used: {error.strerror or error}; choose another "
                               "folder with the variable MINI_BERT_CACHE.")


def _whole(rows: npt.NDArray[np.void]) -> BoolArray:
    return np.array([crc32(vector.tobytes()) == total
                     for vector, total in zip(rows["vector"], rows["sum"].tolist(), strict=True)], bool)
