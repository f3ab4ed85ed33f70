"""Files of torch.save that hold a dict of tensors (pytorch_model.bin), read without PyTorch and without pickle.

    since 1.6      a zip archive, nothing compressed: NAME/data.pkl, the dict; NAME/data/KEY, the numbers of a storage
    before         five pickles, one after the other: a magic number, a version, facts about the machine, the dict,
                   the keys of the storages; then for each key the number of values in 8 bytes, and the values

opcodes.py interprets the pickles, and can build nothing but tensors. A storage is read once, however many tensors share
it, and its numbers are little-endian. bfloat16 becomes float32.
"""

import math
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from ...errors import CheckpointError
from ...readers import open_file, shown
from ..arrays import Array
from ..precision.bfloat16 import widened
from .opcodes import LARGEST_PICKLE, Machine
from .safetensors_file import LARGEST_WEIGHTS
from .state_dicts import RefusedError, Storage, Strided

_MAGIC, _VERSION = 0x1950A86A20F9469CFC6C, 1001
_BFLOAT16 = "BFloat16Storage"
_KINDS = {"FloatStorage": "<f4", "HalfStorage": "<f2", "DoubleStorage": "<f8", _BFLOAT16: "<u2", "LongStorage": "<i8",
          "IntStorage": "<i4", "ShortStorage": "<i2", "CharStorage": "i1", "ByteStorage": "u1", "BoolStorage": "u1"}
_LARGEST_EMPTY = 1 << 40              # the product of the sizes that are not 0

_Read = Callable[[Storage], bytes]    # the bytes of a storage


def read_pytorch(path: Path) -> dict[str, Array]:
    """The tensors of a file that torch.save wrote; anything but a dict of tensors is refused, and nothing is run."""
    with open_file(path, CheckpointError) as file:
        try:
            if os.fstat(file.fileno()).st_size > LARGEST_WEIGHTS:
                raise RefusedError(f"is larger than {LARGEST_WEIGHTS:,} bytes")
            begin = file.read(4)
            file.seek(0)
            if begin == b"PK\x03\x04":
                return _read_zip(file)
            if begin[:1] == b"\x80":                 # a pickle
                return _read_stream(file)
            raise RefusedError("is neither a zip archive nor the older form of torch.save")
        except RefusedError as reason:
            raise CheckpointError(f"{shown(path)} {reason}: it is refused, and nothing in it was run.") from None
        except (OSError, MemoryError) as reason:
            raise CheckpointError(f"{shown(path)} cannot be read: {str(reason)[:200] or 'it is too large'}.") from None


# -------------------------------------------------------------------- a zip archive

def _read_zip(file: IO[bytes]) -> dict[str, Array]:
    import zipfile

    try:
        with zipfile.ZipFile(file) as archive:
            entries = {entry.filename: entry for entry in archive.infolist()}
            _require_stored(archive.infolist(), os.fstat(file.fileno()).st_size)
            pickles = [name for name in entries if name.endswith("/data.pkl") and name.count("/") == 1]
            if len(pickles) != 1 or any(not _inside(name, pickles[0].removesuffix("data.pkl")) for name in entries):
                raise RefusedError("is a zip archive, but not one of torch.save: it has no folder with a data.pkl, or "
                                   "names outside of it")
            folder = pickles[0].removesuffix("data.pkl")
            if entries[pickles[0]].file_size > LARGEST_PICKLE:
                raise RefusedError(f"has a pickle of more than {LARGEST_PICKLE:,} bytes")
            order = entries.get(f"{folder}byteorder")
            if order is not None and (order.file_size > 10 or archive.read(order) != b"little"):
                raise RefusedError("has numbers that are not little-endian")

            def read(storage: Storage) -> bytes:
                entry = entries.get(f"{folder}data/{storage.key}")
                if entry is None:
                    raise RefusedError(f"lacks the numbers of the storage {storage.key[:100]!r}")
                if entry.file_size != _size(storage):
                    raise RefusedError(f"has {entry.file_size:,} bytes for the storage {storage.key[:100]!r}, which "
                                       f"needs {_size(storage):,}")
                return archive.read(entry)

            return _tensors(Machine(archive.read(pickles[0])).run(), read)
    except RefusedError:
        raise
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, struct.error, ValueError, IndexError,
            OverflowError) as reason:
        raise RefusedError(f"is a damaged zip archive ({' '.join(ascii(str(reason)).split())[:200]})") from None


def _require_stored(entries: list[Any], size: int) -> None:
    """Refuse what grows when it is unpacked: compressed, encrypted, repeated and overlapping entries."""
    if len({entry.filename for entry in entries}) < len(entries):
        raise RefusedError("is a zip archive with a name that appears twice")
    if any(entry.compress_type or entry.flag_bits & 1 or entry.file_size != entry.compress_size for entry in entries):
        raise RefusedError("is a zip archive with compressed or encrypted entries, which torch.save does not write")
    if sum(entry.file_size for entry in entries) > size:
        raise RefusedError("is a zip archive whose entries are larger than the file")


def _inside(name: str, folder: str) -> bool:
    return name.startswith(folder) and ".." not in name.split("/") and "\\" not in name


# -------------------------------------------------------------------- the older form

def _read_stream(file: IO[bytes]) -> dict[str, Array]:
    head = file.read(LARGEST_PICKLE)
    place, values, storages = 0, [], []
    for _ in range(5):
        machine = Machine(head, place)
        values.append(machine.run())
        if values[0] != _MAGIC:
            raise RefusedError("is a pickle, but not one of torch.save")
        storages.append(machine.storages)
        place = machine.place
    _, version, system, content, keys = values
    declared = storages[3]
    if version != _VERSION or type(system) is not dict:
        raise RefusedError("has another version than 1001 of the older form of torch.save")
    if system.get("little_endian") is not True:
        raise RefusedError("has numbers that are not little-endian")
    if type(keys) is not list or not all(type(key) is str for key in keys) or sorted(keys) != sorted(declared):
        raise RefusedError("has other storages than its tensors name")
    if place + sum(8 + _size(storage) for storage in declared.values()) > os.fstat(file.fileno()).st_size:
        raise RefusedError("ends in the middle of its numbers")
    places = {}
    for key in keys:
        file.seek(place)
        if file.read(8) != struct.pack("<q", declared[key].count):
            raise RefusedError(f"has another number of values than it says for the storage {key[:100]!r}")
        places[key] = place + 8
        place += 8 + _size(declared[key])

    def read(storage: Storage) -> bytes:
        file.seek(places[storage.key])
        return file.read(_size(storage))

    return _tensors(content, read)


# -------------------------------------------------------------------- tensors

def _size(storage: Storage) -> int:
    return storage.count * np.dtype(_KINDS[storage.kind]).itemsize


def _tensors(content: Any, read: _Read) -> dict[str, Array]:
    if type(content) is not dict:
        raise RefusedError("does not hold a dict of tensors")
    for name, tensor in content.items():
        if type(tensor) is not Strided:
            raise RefusedError(f"has {name[:100]!r}, which is not a tensor")
        _require_within(name, tensor)
    storages: dict[str, Array] = {}
    return {name: _view(tensor, storages, read) for name, tensor in content.items()}


def _require_within(name: str, tensor: Strided) -> None:
    """Refuse a tensor that reaches out of its storage, or that repeats numbers of it in order to be huge."""
    where = f"has {name[:100]!r} of the shape {str(tensor.shape)[:100]}"
    numbers, whole = tensor.storage.count, math.prod(size or 1 for size in tensor.shape)      # whole: as if none were 0
    if min((tensor.offset, *tensor.shape, *tensor.strides)) < 0:
        raise RefusedError(f"{where} with a negative size, stride or offset")
    last = tensor.offset + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.strides, strict=True))
    if (whole > _LARGEST_EMPTY) if 0 in tensor.shape else (whole > numbers or last >= numbers):
        raise RefusedError(f"{where}, which does not fit its storage of {numbers:,} values")


def _view(tensor: Strided, storages: dict[str, Array], read: _Read) -> Array:
    storage = tensor.storage
    if storage.key not in storages:
        data = read(storage)
        if len(data) != _size(storage):
            raise RefusedError("ends in the middle of its numbers")
        values: npt.NDArray[Any] = np.frombuffer(data, _KINDS[storage.kind])
        storages[storage.key] = (widened(values) if storage.kind == _BFLOAT16 else
                                 values != 0 if storage.kind == "BoolStorage" else values)
    values = storages[storage.key]
    if 0 in tensor.shape:
        return np.empty(tensor.shape, values.dtype)
    strides = [stride * values.itemsize if size > 1 else 0
               for size, stride in zip(tensor.shape, tensor.strides, strict=True)]
    return np.ndarray(tensor.shape, values.dtype, values.data, tensor.offset * values.itemsize, strides)
