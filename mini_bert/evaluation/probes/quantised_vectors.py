"""Word vectors of one layer, quantised to 16 bits to save memory.

    row = q s        q integers from -32767 to 32767, s = max |row| / 32767

The rounding error is below 1/65000 of the largest element of a row, far below what a probe can detect. With the
pooling `ends`, a word's vector is its first and its last piece side by side; a word of one piece is stored as one row.
Rows are converted to float32, and standardised, when a batch is read.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.arrays import IntArray
from ...errors import InputError
from .word_vectors import POOLINGS, Alignment, Ints, Pooling

_LARGEST = 32767
_BYTES = 2                    # per element; the scale of each row is not counted


def rows_of_words(alignment: Alignment, pooling: str) -> Ints:
    """The index of the first row of each word (N,), followed by the total number of rows."""
    if pooling not in POOLINGS:
        raise InputError(f"pooling must be one of {', '.join(POOLINGS)}, not {pooling!r}.")
    rows = np.ones(len(alignment.pieces), np.int64)
    if POOLINGS[pooling].vectors > 1:
        rows += alignment.pieces > 1
    return np.concatenate([[0], np.cumsum(rows)])


def quantised_bytes(alignment: Alignment, pooling: str, hidden_size: int) -> int:
    """The memory of one layer of quantised vectors."""
    return int(rows_of_words(alignment, pooling)[-1]) * hidden_size * _BYTES


class QuantisedVectors:
    """Vectors (N, D) of one layer, read like a float32 array; `standardised` shifts and scales what is read."""

    dtype = np.dtype(np.float32)

    def __init__(self, alignment: Alignment, pooling: str, hidden_size: int):
        where = rows_of_words(alignment, pooling)
        self._kind: Pooling = POOLINGS[pooling]
        self._first, self._H = where[:-1], hidden_size
        self._last = where[1:] - 1                    # for a word of one piece the same row
        self._rows = np.zeros((int(where[-1]), hidden_size), np.int16)
        self._scale = np.zeros(len(self._rows), np.float32)
        self._shift: npt.NDArray[np.float32] | None = None
        self._factor: npt.NDArray[np.float32] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return len(self._first), self._H * self._kind.vectors

    def __len__(self) -> int:
        return len(self._first)

    def put(self, words: Ints, states: npt.NDArray[Any], start: Ints, count: Ints) -> None:
        """Store the vectors of some words, whose pieces are states[start : start + count].

        Different words may be stored from different threads.
        """
        if self._kind.vectors == 1:
            self._write(self._first[words], self._kind.of(states, start, count))
        else:
            self._write(self._first[words], states[start])
            several = np.flatnonzero(count > 1)
            self._write(self._last[words[several]], states[start[several] + count[several] - 1])

    def _write(self, rows: Ints, values: npt.NDArray[Any]) -> None:
        if len(rows):
            scale = np.abs(values).max(axis=1).astype(np.float32) / _LARGEST
            self._scale[rows] = scale
            self._rows[rows] = np.rint(values / np.maximum(scale, np.finfo(np.float32).tiny)[:, None])

    def standardised(self, shift: npt.NDArray[Any] | None, deviation: npt.NDArray[Any]) -> "QuantisedVectors":
        """The same rows, read as (vector - shift) / deviation."""
        made = object.__new__(QuantisedVectors)
        made.__dict__.update(self.__dict__)
        made._shift = None if shift is None else shift.astype(np.float32)
        made._factor = (1 / deviation).astype(np.float32)
        return made

    def take(self, words: IntArray, out: npt.NDArray[np.float32] | None = None) -> npt.NDArray[np.float32]:
        """The vectors (n, D) of words by index."""
        made = np.empty((len(words), self.shape[1]), np.float32) if out is None else out
        for k, rows in enumerate((self._first[words], self._last[words])[: self._kind.vectors]):
            part = made[:, k * self._H : (k + 1) * self._H]
            part[...] = self._rows[rows]
            part *= self._scale[rows][:, None]
        if self._shift is not None:
            made -= self._shift
        if self._factor is not None:
            made *= self._factor
        return made

    def __getitem__(self, words: slice | Sequence[int] | IntArray) -> npt.NDArray[np.float32]:
        """The vectors of a slice (n, D), or of an array of indices (..., D)."""
        numbers = np.arange(len(self))[words] if isinstance(words, slice) else np.asarray(words)
        return self.take(numbers.reshape(-1)).reshape(*numbers.shape, -1)
