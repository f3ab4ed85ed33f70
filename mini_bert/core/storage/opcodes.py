"""The pickles of PyTorch's state dicts, interpreted opcode by opcode into plain values.

A pickle is a program for a machine with a stack: opcodes push numbers and text, collect them in tuples and dicts, fetch
functions by name and call them. Whoever runs it with Python's own machine runs whatever it names. The machine here
knows the opcodes that a dict of tensors needs, and can import and call nothing: a name is looked up in a short list and
stays a name, and state_dicts.py has what stands in for a call.

    GLOBAL torch._utils _rebuild_tensor_v2                            the name
    BINPERSID ("storage", torch.FloatStorage, "0", "cpu", 12)         Storage("FloatStorage", "0", 12)
    REDUCE (storage, offset 0, shape (3, 4), strides (4, 1), ...)     Strided(storage, 0, (3, 4), (4, 1))

Every other opcode, name or kind of persistent id is refused with its name.
"""

import struct
from collections.abc import Callable
from typing import Any

from .state_dicts import CALLS, STORAGES, Name, RefusedError, Storage, set_item

LARGEST_PICKLE = 1 << 24              # bytes
_MOST_OPCODES = 1 << 21               # a tensor takes about forty
_LONGEST_INTEGER = 16                 # bytes
_REFUSED = {
    ord("0"): "POP", ord("1"): "POP_MARK", ord("2"): "DUP", ord("B"): "BINBYTES", ord("C"): "SHORT_BINBYTES",
    ord("F"): "FLOAT", ord("I"): "INT", ord("L"): "LONG", ord("P"): "PERSID", ord("S"): "STRING", ord("V"): "UNICODE",
    ord("d"): "DICT", ord("g"): "GET", ord("i"): "INST", ord("l"): "LIST", ord("o"): "OBJ", ord("p"): "PUT",
    0x81: "NEWOBJ", 0x82: "EXT1", 0x83: "EXT2", 0x84: "EXT4", 0x8b: "LONG4", 0x8d: "BINUNICODE8", 0x8e: "BINBYTES8",
    0x8f: "EMPTY_SET", 0x90: "ADDITEMS", 0x91: "FROZENSET", 0x92: "NEWOBJ_EX", 0x96: "BYTEARRAY8",
    0x97: "NEXT_BUFFER", 0x98: "READONLY_BUFFER"}


class Machine:
    """Interprets the pickle that begins at `place`; afterwards `place` is its end and `storages` what it names."""

    def __init__(self, data: bytes, place: int = 0) -> None:
        self.data, self.place = data, place
        self.storages: dict[str, Storage] = {}
        self._stack: list[Any] = []
        self._below: list[list[Any]] = []             # the stacks under each open MARK
        self._memo: dict[int, Any] = {}

    def run(self) -> Any:
        for _ in range(_MOST_OPCODES):
            code = self._take(1)[0]
            if code == ord("."):
                return self._pop()
            step = _OPCODES.get(code)
            if step is None:
                raise RefusedError(f"has the opcode {_REFUSED.get(code, hex(code))}, which no dict of tensors needs")
            step(self)
        raise RefusedError(f"has more than {_MOST_OPCODES:,} opcodes")

    def _take(self, count: int) -> bytes:
        if self.place + count > len(self.data):
            raise RefusedError("ends in the middle of its pickle")
        self.place += count
        return self.data[self.place - count : self.place]

    def _number(self, layout: str) -> Any:
        return struct.unpack(layout, self._take(struct.calcsize(layout)))[0]

    def _text(self, length: int) -> str:
        try:
            return self._take(length).decode("utf-8")
        except UnicodeDecodeError:
            raise RefusedError("has text that is not UTF-8") from None

    def _line(self) -> str:
        end = self.data.find(b"\n", self.place, self.place + 1000)
        if end < 0:
            raise RefusedError("has an unterminated name")
        line = self._text(end - self.place)
        self.place += 1
        return line

    def _pop(self, kind: type = object) -> Any:
        if not self._stack or not isinstance(self._stack[-1], kind):
            raise RefusedError("has a damaged pickle: an opcode lacks the value that it works on")
        return self._stack.pop()

    def _last(self, kind: type = object) -> Any:
        self._stack.append(self._pop(kind))
        return self._stack[-1]

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _mark(self) -> None:
        self._below.append(self._stack)
        self._stack = []

    def _since_mark(self) -> list[Any]:
        if not self._below:
            raise RefusedError("has a damaged pickle: a MARK is missing")
        values, self._stack = self._stack, self._below.pop()
        return values

    def _several(self, count: int) -> None:
        self._push(tuple([self._pop() for _ in range(count)][::-1]))

    def _protocol(self) -> None:
        version = self._take(1)[0]
        if not 2 <= version <= 5:
            raise RefusedError(f"has a pickle of protocol {version}; 2 to 5 are read")

    def _integer(self) -> None:
        length = self._take(1)[0]
        if length > _LONGEST_INTEGER:
            raise RefusedError(f"has a whole number of more than {_LONGEST_INTEGER} bytes")
        self._push(int.from_bytes(self._take(length), "little", signed=True))

    def _put(self, number: int) -> None:
        self._memo[number] = self._last()

    def _get(self, number: int) -> None:
        if number not in self._memo:
            raise RefusedError("has a damaged pickle: it reads a memo entry that was never stored")
        self._push(self._memo[number])

    def _set_items(self, values: list[Any]) -> None:
        if len(values) % 2:
            raise RefusedError("has a damaged pickle: a key without a value")
        into = self._last(dict)
        for key, value in zip(values[::2], values[1::2], strict=True):
            set_item(into, key, value)

    def _name(self, module: str, name: str) -> None:
        found = Name(module, name)
        if found not in CALLS and found not in STORAGES:
            raise RefusedError(f"asks for {f'{module}.{name}'[:100]!r}, which is no part of a tensor")
        self._push(found)

    def _stack_name(self) -> None:
        name, module = self._pop(str), self._pop(str)
        self._name(module, name)

    def _call(self) -> None:
        arguments, function = self._pop(tuple), self._pop(Name)
        if function not in CALLS:
            raise RefusedError(f"calls {function.module}.{function.name}, which is the name of a kind of storage")
        self._push(CALLS[function](arguments))

    def _build(self) -> None:
        """The attributes of an OrderedDict, such as its _metadata: the versions of modules, which nobody needs."""
        self._pop(dict)
        self._last(dict)

    def _persistent(self) -> None:
        parts = self._pop()
        kind = parts[0] if type(parts) is tuple and parts else None
        if kind != "storage":
            raise RefusedError(f"has a persistent id of the kind {str(kind)[:100] if type(kind) is str else ''!r}; "
                               "only 'storage' is read")
        if (len(parts) not in (5, 6) or parts[5:] not in ((), (None,)) or type(parts[1]) is not Name
                or parts[1] not in STORAGES or type(parts[2]) is not str or type(parts[3]) is not str
                or type(parts[4]) is not int or parts[4] < 0):
            raise RefusedError("has a storage that is not described by a kind, a key, a device and a number of values")
        storage = Storage(parts[1].name, parts[2], parts[4])
        if self.storages.setdefault(storage.key, storage) != storage:
            raise RefusedError(f"describes the storage {storage.key[:100]!r} in two ways")
        self._push(storage)


_OPCODES: dict[int, Callable[[Machine], None]] = {
    0x80: Machine._protocol, 0x95: lambda m: m._number("<Q"),                                       # PROTO, FRAME
    ord("("): Machine._mark,
    ord("N"): lambda m: m._push(None), 0x88: lambda m: m._push(True), 0x89: lambda m: m._push(False),
    ord("J"): lambda m: m._push(m._number("<i")), ord("K"): lambda m: m._push(m._number("<B")),     # BININT, BININT1
    ord("M"): lambda m: m._push(m._number("<H")), 0x8a: Machine._integer,                           # BININT2, LONG1
    ord("G"): lambda m: m._push(m._number(">d")),                                                   # BINFLOAT
    ord("X"): lambda m: m._push(m._text(m._number("<I"))),                                          # BINUNICODE
    0x8c: lambda m: m._push(m._text(m._number("<B"))),                                              # and SHORT_
    ord("T"): lambda m: m._push(m._text(m._number("<I"))),                                          # BINSTRING
    ord("U"): lambda m: m._push(m._text(m._number("<B"))),                                          # and SHORT_
    ord(")"): lambda m: m._push(()), 0x85: lambda m: m._several(1), 0x86: lambda m: m._several(2),  # tuples
    0x87: lambda m: m._several(3), ord("t"): lambda m: m._push(tuple(m._since_mark())),
    ord("]"): lambda m: m._push([]), ord("a"): lambda m: _append(m, [m._pop()]),                    # lists
    ord("e"): lambda m: _append(m, m._since_mark()),
    ord("}"): lambda m: m._push({}), ord("s"): lambda m: m._set_items([m._pop(), m._pop()][::-1]),  # dicts
    ord("u"): lambda m: m._set_items(m._since_mark()),
    ord("q"): lambda m: m._put(m._number("<B")), ord("r"): lambda m: m._put(m._number("<I")),       # the memo
    0x94: lambda m: m._put(len(m._memo)),
    ord("h"): lambda m: m._get(m._number("<B")), ord("j"): lambda m: m._get(m._number("<I")),
    ord("c"): lambda m: m._name(m._line(), m._line()), 0x93: Machine._stack_name,                   # GLOBAL, STACK_
    ord("Q"): Machine._persistent, ord("R"): Machine._call, ord("b"): Machine._build,
}


def _append(machine: Machine, values: list[Any]) -> None:
    machine._last(list).extend(values)
