"""A file of numbers that is read like an array, block by block, and verified as it is read.

The file is read, not mapped: a mapped file that somebody shortens ends the process without a word (SIGBUS), while a
read that comes up short is an error with a sentence. Each block of 64 kB has a CRC-32, which is compared when the block
is read for the first time, so no value is ever used that was not verified. A small file is kept in memory.
"""

import os
import stat
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from ...errors import CorpusError

BLOCK = 1 << 16               # bytes that have one checksum
KEPT = 1 << 25                # bytes of the largest file that is kept in memory
_AT_ONCE = 1 << 22            # bytes that are read at once


def block_count(size: int) -> int:
    """The number of checksums of a file of this many bytes."""
    return -(-size // BLOCK)


def block_sums(path: Path) -> bytes:
    """The checksums of a file's blocks, each an uint32."""
    with path.open("rb") as file:
        return b"".join(crc32(block).to_bytes(4, "little") for block in iter(lambda: file.read(BLOCK), b""))


class FileArray:
    """A one-dimensional array in a file. Ranges and lists of places give arrays in memory.

    `sums` are the checksums of the blocks, or None if the file has none.
    """

    def __init__(self, path: Path, dtype: str, size: int, sums: npt.NDArray[np.uint32] | None):
        self.path, self.dtype, self.size = path, np.dtype(dtype), size
        self.nbytes, self.shape = size * self.dtype.itemsize, (size,)
        self._sums = sums
        self._verified = np.full(block_count(self.nbytes), sums is None)
        self._kept: npt.NDArray[Any] | None = None
        self._lock, self._handle = Lock(), -1
        try:
            self._handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
            status = os.fstat(self._handle)
            actual = status.st_size if stat.S_ISREG(status.st_mode) else "no"
        except OSError:
            actual = "no"
        if actual != self.nbytes:
            raise CorpusError(f"{path} has {actual} bytes, not the {self.nbytes} of corpus.json; prepare the corpus "
                              "again.")

    def __del__(self) -> None:
        if getattr(self, "_handle", -1) >= 0:
            os.close(self._handle)

    def __len__(self) -> int:
        return self.size

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return self._values(0, self.size) if dtype is None else self.astype(dtype)

    def astype(self, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        return self._values(0, self.size).astype(dtype)

    def tolist(self) -> list[int]:
        values: list[int] = self[:].tolist()
        return values

    def __getitem__(self, places: Any) -> Any:
        """The value at a place, those of a range, or those at many places."""
        if isinstance(places, slice):
            start, stop, step = places.indices(self.size)
            if step != 1:
                raise IndexError("a range of a file has no step")
            return self._values(start, max(start, stop))
        if isinstance(places, int | np.integer):
            place = int(places) + (self.size if places < 0 else 0)
            if not 0 <= place < self.size:
                raise IndexError(f"{self.path.name} has {self.size} values; there is none at {places}")
            return self._values(place, place + 1)[0]
        wanted = np.asarray(places)
        if wanted.size and (wanted.min() < 0 or wanted.max() >= self.size):
            raise CorpusError(f"{self.path.parent} is damaged; prepare the corpus again.")
        if self.nbytes <= KEPT:
            return self._values(0, self.size)[wanted]
        return self._gathered(wanted.reshape(-1).astype(np.int64)).reshape(wanted.shape)

    def verify(self) -> None:
        """Compare all checksums that have not been compared yet."""
        step = _AT_ONCE // self.dtype.itemsize
        for start in range(0, self.size, step):
            if not self._verified[start * self.dtype.itemsize // BLOCK :][: _AT_ONCE // BLOCK].all():
                self._values(start, min(start + step, self.size))

    def _gathered(self, wanted: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """The values at many places; near ones are read together."""
        result = np.empty(len(wanted), self.dtype)
        order = np.argsort(wanted, kind="stable")
        ordered = wanted[order]
        blocks = ordered // (BLOCK // self.dtype.itemsize)
        cuts = [0, *(np.flatnonzero(np.diff(blocks)) + 1).tolist(), len(ordered)] if len(ordered) else []
        for begin, end in pairwise(cuts):
            first, last = int(ordered[begin]), int(ordered[end - 1])
            result[order[begin:end]] = self._values(first, last + 1)[ordered[begin:end] - first]
        return result

    def _values(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Values [start, stop), verified."""
        if self._kept is not None:
            return self._kept[start:stop]
        if self.nbytes <= KEPT:
            kept = np.frombuffer(self._bytes(0, self.nbytes), self.dtype)
            kept.flags.writeable = False
            self._kept = kept
            return kept[start:stop]
        item = self.dtype.itemsize
        return np.frombuffer(self._bytes(start * item, stop * item), self.dtype)

    def _bytes(self, start: int, stop: int) -> bytes | memoryview:
        first, last = start // BLOCK, block_count(stop)
        if self._sums is None or self._verified[first:last].all():
            return self._read(start, stop)
        data = memoryview(self._read(first * BLOCK, min(last * BLOCK, self.nbytes)))
        for block in range(first, last):
            if crc32(data[(block - first) * BLOCK : (block - first + 1) * BLOCK]) != self._sums[block]:
                raise CorpusError(f"{self.path} is damaged: it has changed since the corpus was prepared; prepare the "
                                  "corpus again.")
        self._verified[first:last] = True
        return data[start - first * BLOCK : stop - first * BLOCK]

    def _read(self, start: int, stop: int) -> bytes:
        parts, place = [], start
        while place < stop:
            part = self._read_some(stop - place, place)
            if not part:
                raise CorpusError(f"{self.path} has become shorter while it was in use; prepare the corpus again.")
            parts.append(part)
            place += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _read_some(self, length: int, place: int) -> bytes:
        try:
            if hasattr(os, "pread"):
                return os.pread(self._handle, length, place)
            with self._lock:                          # Windows
                os.lseek(self._handle, place, os.SEEK_SET)
                return os.read(self._handle, length)
        except OSError as error:
            raise CorpusError(f"{self.path} cannot be read: {error.strerror or error}.") from None
