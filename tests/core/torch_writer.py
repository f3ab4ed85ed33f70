"""Files as torch.save writes them, opcode by opcode, so that tests can write what it never would."""

import io
import struct
import zipfile
from collections.abc import Mapping

import numpy as np

MAGIC = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
KINDS = {"f4": "FloatStorage", "f2": "HalfStorage", "f8": "DoubleStorage", "i8": "LongStorage", "i4": "IntStorage"}
REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\n"


def text(content: str) -> bytes:
    encoded = content.encode()
    return b"X" + struct.pack("<I", len(encoded)) + encoded


def number(value: int) -> bytes:
    if -(1 << 31) <= value < 1 << 31:
        return b"J" + struct.pack("<i", value)
    encoded = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(encoded)]) + encoded


def numbers(*values: int) -> bytes:
    return b"(" + b"".join(map(number, values)) + b"t"


def storage(key: str, count: int, kind: str = "FloatStorage") -> bytes:
    return (b"(" + text("storage") + f"ctorch\n{kind}\n".encode() + text(key) + text("cpu") + number(count) + b"tQ")


def tensor(key: str, count: int, shape: tuple[int, ...], strides: tuple[int, ...] | None = None, offset: int = 0,
           kind: str = "FloatStorage") -> bytes:
    """The opcodes of a tensor; its strides are those of a table in C order if none are given."""
    if strides is None:
        strides = tuple(int(np.prod(shape[axis + 1 :])) for axis in range(len(shape)))
    return (REBUILD + b"(" + storage(key, count, kind) + number(offset) + numbers(*shape) + numbers(*strides)
            + b"\x89ccollections\nOrderedDict\n)RtR")


def state_dict(tensors: Mapping[str, bytes]) -> bytes:
    items = b"".join(text(name) + opcodes for name, opcodes in tensors.items())
    return b"\x80\x02ccollections\nOrderedDict\n)R(" + items + b"u."


def zipped(pickle: bytes, storages: Mapping[str, bytes], *, folder: str = "archive/", byteorder: bytes = b"little",
           others: Mapping[str, bytes] | None = None, compression: int = zipfile.ZIP_STORED) -> bytes:
    """The form since PyTorch 1.6."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.writestr(f"{folder}data.pkl", pickle)
        archive.writestr(f"{folder}byteorder", byteorder)
        for key, data in storages.items():
            archive.writestr(f"{folder}data/{key}", data)
        for name, data in (others or {}).items():
            archive.writestr(name, data)
    return file.getvalue()


def streamed(pickle: bytes, storages: Mapping[str, tuple[int, bytes]], *, little: bool = True) -> bytes:
    """The form before; a storage is the number of its values, and its bytes."""
    version = b"\x80\x02M\xe9\x03."
    system = b"\x80\x02}" + text("little_endian") + (b"\x88" if little else b"\x89") + b"s."
    keys = b"\x80\x02](" + b"".join(map(text, storages)) + b"e."
    data = b"".join(struct.pack("<q", count) + content for count, content in storages.values())
    return MAGIC + version + system + pickle + keys + data


def torch_saved(tensors: Mapping[str, np.ndarray], *, zip_form: bool = True) -> bytes:
    """A file with these arrays."""
    keys = {name: str(place) for place, name in enumerate(tensors)}
    pickle = state_dict({name: tensor(keys[name], array.size, array.shape, kind=KINDS[array.dtype.str[1:]])
                         for name, array in tensors.items()})
    if zip_form:
        return zipped(pickle, {keys[name]: array.tobytes() for name, array in tensors.items()})
    return streamed(pickle, {keys[name]: (array.size, array.tobytes()) for name, array in tensors.items()})
