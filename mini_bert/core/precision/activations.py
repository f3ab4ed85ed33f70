"""What a pass keeps of a layer for the backward: as it was computed, or as bfloat16, in half the memory.

    forward     y = layer(x), with float32 as always; then every matrix of the layer's cache is rounded
    backward    the arrays of one layer are widened; its backward computes with float32

The forward pass, and so the loss, do not change by a bit. The gradients are those of activations with eight bits of
precision, rounded to the nearest. Derivation: docs/math/bfloat16.md

A cache is a tree of dicts, tuples and lists, and several of its arrays are views of the same memory: queries split into
heads, the input of three products. So memory is rounded once, and the views are made again. Parameters are left as
they are, and so are arrays with one number per row. Masks of dropout take a bit per element.
"""

from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ..arrays import Array, Deferred
from ..params import Parameters
from ..registry import register
from .bfloat16 import Halves, nearest, widened

_HIDDEN = "_hidden"


class Activations(Protocol):
    """A word in the slot `activations` names a class of this kind, made without arguments."""

    def kept(self, cache: dict[str, Any], params: Parameters) -> dict[str, Any]:
        """What stays in memory of a layer's cache; `params` are the parameters of the pass."""

    def opened(self, kept: Mapping[str, Any]) -> Mapping[str, Any]:
        """The cache again, for the backward."""


@register("activations", "float32")
class FullActivations:
    """As they were computed."""

    def kept(self, cache: dict[str, Any], params: Parameters) -> dict[str, Any]:
        return cache

    def opened(self, kept: Mapping[str, Any]) -> Mapping[str, Any]:
        return kept


AS_COMPUTED = FullActivations()


class _Rounded(NamedTuple):
    """An array, as a view of memory that is kept as halves."""

    owner: int                            # the number of that memory
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


class _Packed(NamedTuple):
    """An array of truth values, such as dropout's mask, eight to a byte."""

    bits: npt.NDArray[np.uint8]
    shape: tuple[int, ...]


class _Memory:
    """The memory of a layer's cache while it is rounded: each array that owns some, once."""

    def __init__(self, params: Array):
        self.halves: list[Halves] = []
        self._params, self._owners = params, list[Array]()

    def rounded(self, array: npt.NDArray[Any]) -> Any:
        if array.dtype == np.bool_ and array.ndim > 1:
            return _Packed(np.packbits(array), array.shape)
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        if array.dtype != np.float32 or array.ndim == 1 or owner.dtype != np.float32 \
                or not owner.flags.c_contiguous or np.may_share_memory(owner, self._params):
            return array
        number = next((i for i, known in enumerate(self._owners) if known is owner), len(self._owners))
        if number == len(self._owners):
            self._owners.append(owner)
            self.halves.append(nearest(owner.reshape(-1)))
        offset = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
        return _Rounded(number, array.shape, array.strides, offset)

    def tree(self, value: Any) -> Any:
        """The cache, or a part of it; of its dicts what is the operations' own, not the readers': see core/cache.py."""
        if isinstance(value, dict):
            return {name: self.tree(inner) for name, inner in value.items() if name.startswith("_")}
        return self.rounded(value) if isinstance(value, np.ndarray) else _of_values(value, self.tree)


class _Opened(Mapping[str, Any]):
    """A dict of a rounded cache. A part is widened when it is asked for: that of attention, then of feed-forward."""

    def __init__(self, tree: dict[str, Any], halves: list[Halves]):
        self._tree, self._halves = tree, halves

    def __getitem__(self, name: str) -> Any:
        return self._widened(self._tree[name], {})

    def __iter__(self) -> Iterator[str]:
        return iter(self._tree)

    def __len__(self) -> int:
        return len(self._tree)

    def _widened(self, value: Any, memory: dict[int, Array]) -> Any:
        if isinstance(value, _Rounded):
            number, shape, strides, offset = value
            if number not in memory:                      # once for all its views
                memory[number] = widened(self._halves[number])
            return np.ndarray(shape, np.float32, memory[number], offset, strides)
        if isinstance(value, _Packed):
            return np.unpackbits(value.bits, count=prod(value.shape)).view(bool).reshape(value.shape)
        if isinstance(value, dict):
            return _Opened(value, self._halves)
        return _of_values(value, lambda inner: self._widened(inner, memory))


def _of_values(value: Any, change: Callable[[Any], Any]) -> Any:
    """A tuple or list with its values changed; anything else as it is."""
    if not isinstance(value, tuple | list):
        return value
    values = [change(inner) for inner in value]
    return value._make(values) if hasattr(value, "_make") else type(value)(values)


@register("activations", "bfloat16")
class BFloat16Activations:
    """Rounded to the nearest. A layer's cache keeps nothing for readers but its output."""

    def kept(self, cache: dict[str, Any], params: Parameters) -> dict[str, Any]:
        memory = _Memory(params.flat)
        tree = memory.tree({**cache, _HIDDEN: cache["hidden"]})
        opened = _Opened(tree, memory.halves)
        return {"hidden": Deferred(lambda: opened[_HIDDEN]), "_opened": opened}

    def opened(self, kept: Mapping[str, Any]) -> Mapping[str, Any]:
        opened: Mapping[str, Any] = kept["_opened"]
        return opened
