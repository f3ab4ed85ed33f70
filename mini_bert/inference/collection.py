"""The nearest vectors of a file, exactly and in bounded memory.

The file is a .npy with one vector per row, as `mini-bert embed --out` writes it. It is read block by block into buffers
that stay in the processor's cache, where each block is multiplied with all queries at once; threads take the blocks in
turn. So a search needs the memory of the buffers whatever the size of the file. The file is read and not mapped, for
the reason that text/corpora/file_array.py gives: shortening a mapped file ends the process that reads it.

The lengths of the vectors are computed, and kept, when a block is read for the first time.
"""

import os
import stat
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..core.arrays import Array, IntArray
from ..errors import DataError, InputError
from ..readers import shown
from ..workers import Workers

BLOCK = 1 << 21               # bytes of a block of float32
_KINDS = ("<f4", "<f2", "<f8")


class Hit(NamedTuple):
    """A row of the file, from 0, and the cosine of its vector and the query's."""

    number: int
    cosine: float


class Collection:
    """Vectors in a file. It stays open; a file that takes its name later is not looked at."""

    def __init__(self, path: str | PathLike[str]):
        self.path = Path(path)
        self._handle, self._start, self.dtype, (self.size, self.width) = _opened(self.path)
        self._rows = max(1, BLOCK // (4 * self.width))
        self._lengths = np.zeros(self.size, np.float32)           # 0 until the row has been read
        self._lock = Lock()

    def __del__(self) -> None:
        if getattr(self, "_handle", -1) >= 0:
            os.close(self._handle)

    def __len__(self) -> int:
        return self.size

    def search(self, queries: npt.ArrayLike, top: int, team: Workers | None = None) -> list[list[Hit]]:
        """The `top` rows with the largest cosine for each query (Q, H), the largest first; of equal ones the earlier.

        The result does not depend on the number of threads.
        """
        asked = np.atleast_2d(np.asarray(queries, np.float32))
        if asked.shape[1] != self.width:
            raise InputError(f"The vectors of {shown(self.path)} have {self.width} numbers, the query's "
                             f"{asked.shape[1]}; they are of different models.")
        if top < 1:
            raise InputError(f"top must be at least 1, not {top}.")
        asked = asked / np.maximum(np.linalg.norm(asked, axis=1, keepdims=True), 1e-12)
        shares = [range(start, self.size, step) for start, step in self._shares(team)]

        def one(starts: range) -> list[_Best]:
            best = [_Best(top) for _ in asked]
            raw = np.empty((self._rows, self.width), self.dtype)
            for start in starts:
                rows = self._block(raw, start)
                scores = (rows @ asked.T).T / np.maximum(self._lengths[start : start + len(rows)], 1e-12)
                for kept, row in zip(best, scores, strict=True):
                    kept.add(row, start)
            return best

        found = [one(starts) for starts in shares] if team is None else team.map(one, shares)
        return [_merged(of_query, top) for of_query in zip(*found, strict=True)]

    def _shares(self, team: Workers | None) -> list[tuple[int, int]]:
        """(first row, step) of each thread's blocks."""
        threads = 1 if team is None else team.threads
        return [(number * self._rows, threads * self._rows) for number in range(threads)]

    def _block(self, raw: npt.NDArray[Any], start: int) -> Array:
        """The rows from `start` on, as many as fit into the buffer."""
        part = raw[: min(self._rows, self.size - start)]
        self._read(part, self._start + start * self.width * self.dtype.itemsize)
        rows: Array = part.astype(np.float32, copy=False)
        lengths = self._lengths[start : start + len(rows)]
        if not lengths.all():                     # of zero vectors again and again, which are few
            found = np.sqrt(np.einsum("ij,ij->i", rows, rows))
            if not np.isfinite(found).all():
                number = start + int(np.flatnonzero(~np.isfinite(found))[0])
                raise DataError(f"{shown(self.path)} has NaN, infinity or too large a number in row {number + 1}.")
            lengths[...] = found
        return rows

    def _read(self, part: npt.NDArray[Any], place: int) -> None:
        view, done = part.reshape(-1).view(np.uint8).data, 0
        while done < len(view):
            count = self._read_some(view[done:], place + done)
            if not count:
                raise DataError(f"{shown(self.path)} has become shorter while it was in use.")
            done += count

    def _read_some(self, view: memoryview, place: int) -> int:
        try:
            if hasattr(os, "preadv"):
                return os.preadv(self._handle, [view], place)
            with self._lock:                      # Windows, macOS
                os.lseek(self._handle, place, os.SEEK_SET)
                content = os.read(self._handle, len(view))
                view[: len(content)] = content
                return len(content)
        except OSError as error:
            raise DataError(f"{shown(self.path)} cannot be read: {error.strerror or error}.") from None


def _opened(path: Path) -> tuple[int, int, np.dtype[Any], tuple[int, int]]:
    """A handle of a .npy file of vectors, where its numbers begin, their type, and its shape."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError) as error:
        raise DataError(f"{shown(path)} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise DataError(f"{shown(path)} is not a regular file.")
        with os.fdopen(os.dup(handle), "rb") as file:
            try:
                version = np.lib.format.read_magic(file)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else \
                    np.lib.format.read_array_header_2_0
                shape, by_columns, dtype = read(file)
            except ValueError:
                raise DataError(f"{shown(path)} is not a .npy file of vectors, which mini-bert embed --out "
                                "writes.") from None
            start = file.tell()
        if len(shape) != 2 or not shape[0] or not shape[1] or by_columns or dtype.str not in _KINDS:
            raise DataError(f"{shown(path)} must have one vector per row, as float32, float16 or float64; it has the "
                            f"shape {shape} of {dtype.name}{' by columns' if by_columns else ''}.")
        if status.st_size != start + shape[0] * shape[1] * dtype.itemsize:
            raise DataError(f"{shown(path)} has {status.st_size:,} bytes, which are not its {shape[0]:,} vectors of "
                            f"{shape[1]}; it was cut off or changed.")
        return handle, start, dtype, shape
    except BaseException:
        os.close(handle)
        raise


class _Best:
    """The largest scores so far, and their rows."""

    def __init__(self, top: int):
        self.top, self.least = top, -np.inf
        self.scores, self.numbers = np.zeros(0, np.float32), np.zeros(0, np.int64)

    def add(self, scores: Array, start: int) -> None:
        """The scores of rows that come after all others of this thread."""
        if scores.max() <= self.least:            # an equal score of a later row does not count
            return
        chosen = _largest(scores, self.top)
        self.scores = np.concatenate([self.scores, scores[chosen]])
        self.numbers = np.concatenate([self.numbers, chosen + start])
        kept = np.lexsort((self.numbers, -self.scores))[: self.top]
        self.scores, self.numbers = self.scores[kept], self.numbers[kept]
        if len(kept) == self.top:
            self.least = float(self.scores[-1])


def _largest(scores: Array, top: int) -> IntArray:
    """The places of the `top` largest; of equal ones at the border the first."""
    if len(scores) <= top:
        return np.arange(len(scores))
    border = np.partition(scores, -top)[-top]
    above = np.flatnonzero(scores > border)
    chosen: IntArray = np.concatenate([above, np.flatnonzero(scores == border)[: top - len(above)]])
    return chosen


def _merged(parts: Sequence[_Best], top: int) -> list[Hit]:
    scores, numbers = (np.concatenate([getattr(part, name) for part in parts]) for name in ("scores", "numbers"))
    return [Hit(int(numbers[i]), float(scores[i])) for i in np.lexsort((numbers, -scores))[:top]]
