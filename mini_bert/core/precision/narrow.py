"""Matrices that are kept in fewer bits than they are computed with, and widened a tile at a time.

    int8    W_ij = scale_j q_ij      q in -127 ... 127, scale_j = max_i |W_ij| / 127: one for each output channel j
    bf16    the upper half of a float32: bfloat16.py
    fp16    IEEE's half precision: ten bits after the point, and nothing beyond 65,504

An output channel is a column of a matrix that is used as x @ W, and a row of a table that is looked up, such as the
embeddings, which is also what a tied decoder needs. NumPy multiplies neither bytes nor halves, so x @ W widens some
columns of W into a buffer that fits the processor's cache, multiplies, and goes on: the memory of W is saved, not time.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..arrays import Array
from .bfloat16 import nearest, widened

_TILE = 1 << 16               # elements that are widened at a time: 256 KB of float32


class NarrowMatrix(NDArrayOperatorsMixin, ABC):
    """What all kinds share. `W[rows]` and `np.asarray(W)` are widened arrays; `x @ W` is computed tile by tile."""

    word: ClassVar[str]
    ndim = 2

    def __init__(self, values: npt.NDArray[Any], dtype: npt.DTypeLike = np.float32):
        self.values, self.dtype = values, np.dtype(dtype)

    # ---------------------------------------------------------------- for a kind to say

    @classmethod
    @abstractmethod
    def narrowed(cls, W: Array, channels: int) -> Self:
        """W (in, out) in this kind; `channels` is the axis of output channels, of those that have scales."""

    def parts(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays that it is made of, by what stands behind the name of the matrix in a file."""
        return {"": self.values}

    @classmethod
    @abstractmethod
    def of_parts(cls, parts: Mapping[str, npt.NDArray[Any]], dtype: npt.DTypeLike) -> Self:
        """The same from these arrays; ValueError if they are none of this kind."""

    @abstractmethod
    def __getitem__(self, key: Any) -> Array:
        """Some rows, widened."""

    @property
    @abstractmethod
    def T(self) -> Self:
        """The transpose, of the same kind."""

    # ---------------------------------------------------------------- as an array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def size(self) -> int:
        return self.values.size

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.parts().values())

    def is_finite(self) -> bool:
        """Are all numbers finite? Looked at in tiles, as a whole matrix of float32 might not fit."""
        rows = max(1, _TILE // self.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):
            return all(bool(np.isfinite(self[start : start + rows]).all()) for start in range(0, self.shape[0], rows))

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        whole: Array = self[:]
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        times = ufunc is np.matmul and method == "__call__" and isinstance(inputs[0], np.ndarray)
        if times and set(options) <= {"out"}:
            out = options.get("out")
            return self._times(inputs[0], None if out is None else out[0])
        wide = [given[:] if isinstance(given, NarrowMatrix) else given for given in inputs]
        return getattr(ufunc, method)(*wide, **options)

    def _times(self, x: Array, out: Array | None) -> Array:
        """x @ W"""
        y = np.empty((*x.shape[:-1], self.shape[1]), np.result_type(x, self.dtype)) if out is None else out
        columns = max(16, _TILE // self.shape[0])
        for start in range(0, self.shape[1], columns):
            some = slice(start, start + columns)
            np.matmul(x, self[:, some], out=y[..., some])
        return y


class Int8Matrix(NarrowMatrix):
    word = "int8"

    def __init__(self, values: npt.NDArray[np.int8], scale: Array, dtype: npt.DTypeLike = np.float32):
        super().__init__(values, dtype)
        self.scale = scale                        # (1, out), or (out, 1) of a table

    @classmethod
    def narrowed(cls, W: Array, channels: int) -> Self:
        scale = np.abs(W).max(axis=1 - channels, keepdims=True).astype(np.float32) / np.float32(127)
        scale[scale == 0] = 1                     # a channel of zeros
        return cls(np.clip(np.rint(W / scale), -127, 127).astype(np.int8), scale)

    def parts(self) -> dict[str, npt.NDArray[Any]]:
        return {"": self.values, ".scale": self.scale}

    @classmethod
    def of_parts(cls, parts: Mapping[str, npt.NDArray[Any]], dtype: npt.DTypeLike) -> Self:
        values, scale = parts[""], parts.get(".scale")
        rows, columns = values.shape
        if values.dtype != np.int8 or scale is None or scale.dtype != np.float32 \
                or scale.shape not in ((1, columns), (rows, 1)) or not cls(values, scale, dtype).is_finite():
            raise ValueError("is not a matrix of int8 with a scale for each output channel, of finite numbers")
        return cls(values, scale, dtype)

    def __getitem__(self, key: Any) -> Array:
        wide: Array = self.values[key].astype(self.dtype)
        wide *= np.broadcast_to(self.scale, self.shape)[key]
        return wide

    @property
    def T(self) -> Self:
        return type(self)(self.values.T, self.scale.T, self.dtype)


class HalfMatrix(NarrowMatrix):
    """Of numbers that need no scale."""

    stored: ClassVar[npt.DTypeLike]

    @classmethod
    def of_parts(cls, parts: Mapping[str, npt.NDArray[Any]], dtype: npt.DTypeLike) -> Self:
        made = cls(parts[""], dtype)
        if set(parts) != {""} or made.values.dtype != cls.stored or not made.is_finite():
            raise ValueError(f"is not a matrix of finite numbers in {cls.word}")
        return made

    @property
    def T(self) -> Self:
        return type(self)(self.values.T, self.dtype)


class BFloat16Matrix(HalfMatrix):
    word, stored = "bf16", np.uint16

    @classmethod
    def narrowed(cls, W: Array, channels: int) -> Self:
        return cls(nearest(np.ascontiguousarray(W).reshape(-1)).reshape(W.shape))

    def __getitem__(self, key: Any) -> Array:
        return widened(self.values[key]).astype(self.dtype, copy=False)


class Float16Matrix(HalfMatrix):
    word, stored = "fp16", np.float16

    @classmethod
    def narrowed(cls, W: Array, channels: int) -> Self:
        with np.errstate(over="ignore"):
            return cls(W.astype(np.float16))

    def __getitem__(self, key: Any) -> Array:
        wide: Array = self.values[key].astype(self.dtype)
        return wide


KINDS: dict[str, type[NarrowMatrix]] = {kind.word: kind for kind in (Int8Matrix, BFloat16Matrix, Float16Matrix)}
