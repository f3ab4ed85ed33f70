"""What a PyTorch state dict is made of, as plain values: storages, tensors as views of them, and dicts.

    torch.FloatStorage under the key "0", of 12 numbers               Storage("FloatStorage", "0", 12)
    _rebuild_tensor_v2(storage, offset 0, shape (3, 4), strides (4, 1), ...)
                                                                      Strided(storage, 0, (3, 4), (4, 1))

A state dict names what makes it: the functions that CALLS lists, each with the one of this file that stands in for it.
Nothing of PyTorch is called. No function here walks through, compares, hashes or prints a value that was put together,
so that values inside each other cost no more than the bytes that describe them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


class RefusedError(ValueError):
    """Why content is refused, to follow the name of its file."""


@dataclass(frozen=True, slots=True)
class Storage:
    """A row of numbers of one kind, which the file holds under a key."""

    kind: str
    key: str
    count: int


@dataclass(frozen=True, slots=True)
class Strided:
    """A tensor: where its numbers are in a storage. Nothing but the types is checked yet."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Name:
    """A name that a state dict asks for. It stays a name: nothing is imported."""

    module: str
    name: str


# -------------------------------------------------------------------- what stands in for the functions

def _tensor(arguments: tuple[Any, ...]) -> Strided:
    """_rebuild_tensor(storage, offset, shape, strides), and v2, which adds what training needs."""
    if 4 <= len(arguments) <= 7:
        storage, offset, shape, strides = arguments[:4]
        if (isinstance(storage, Storage) and type(offset) is int and _whole(shape) and _whole(strides)
                and len(shape) == len(strides)):
            return Strided(storage, offset, shape, strides)
    raise RefusedError("has a tensor that is not described by a storage, an offset, a shape and strides")


def _parameter(arguments: tuple[Any, ...]) -> Strided:
    """_rebuild_parameter(tensor, requires_grad, hooks): the tensor."""
    if len(arguments) == 3 and isinstance(arguments[0], Strided):
        return arguments[0]
    raise RefusedError("has a parameter that is not made of a tensor")


def _ordered_dict(arguments: tuple[Any, ...]) -> dict[str, Any]:
    """OrderedDict(), or OrderedDict([[key, value], ...]) from Python 2."""
    made: dict[str, Any] = {}
    if arguments:
        if len(arguments) != 1 or type(arguments[0]) is not list:
            raise RefusedError("has an OrderedDict that is not made of pairs")
        for pair in arguments[0]:
            if type(pair) is not list or len(pair) != 2:
                raise RefusedError("has an OrderedDict that is not made of pairs")
            set_item(made, pair[0], pair[1])
    return made


def _size(arguments: tuple[Any, ...]) -> tuple[int, ...]:
    """torch.Size((2, 3)): the tuple."""
    if len(arguments) == 1 and _whole(arguments[0]):
        sizes: tuple[int, ...] = arguments[0]
        return sizes
    raise RefusedError("has a torch.Size that is not made of whole numbers")


CALLS: dict[Name, Callable[[tuple[Any, ...]], Any]] = {
    Name("collections", "OrderedDict"): _ordered_dict, Name("torch", "Size"): _size,
    Name("torch._utils", "_rebuild_tensor"): _tensor, Name("torch._utils", "_rebuild_tensor_v2"): _tensor,
    Name("torch._utils", "_rebuild_parameter"): _parameter}
STORAGES = {Name("torch", f"{kind}Storage")
            for kind in ("Float", "Half", "Double", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool")}


def _whole(value: Any) -> bool:
    return type(value) is tuple and len(value) <= 32 and all(type(size) is int for size in value)


def set_item(into: dict[str, Any], key: Any, value: Any) -> None:
    """into[key] = value, for text that is not there yet."""
    if type(key) is not str:
        raise RefusedError("has a key that is not text")
    if key in into:
        raise RefusedError(f"has {key[:100]!r} twice")
    into[key] = value
