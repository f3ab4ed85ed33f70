"""Planting a bug: a line of the library's own code is changed, and put back.

The code of the function is exchanged inside the function object, so everybody who has imported it runs the changed
line, and nobody does afterwards. The files on disk are never touched.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from inspect import getsourcelines
from pathlib import Path
from textwrap import dedent
from types import CodeType, FunctionType
from typing import Any

from ...errors import InputError

_PACKAGE = __name__.split(".")[0]
_ACTIVE: list["Edit"] = []


@dataclass(frozen=True)
class Edit:
    """One line of a function of the library, and what stands there instead."""

    target: str               # such as core.block:PostLNLayer.backward
    old: str                  # how the line begins
    new: str

    def function(self) -> FunctionType:
        module, _, path = self.target.partition(":")
        found: Any = import_module(f"{_PACKAGE}.{module}")
        function: FunctionType = reduce(getattr, path.split("."), found)
        return function

    def line(self) -> tuple[str, int, str]:
        """The file, the number and the text of the line."""
        lines, first = getsourcelines(self.function())
        place = self._place(lines)
        file = Path(_PACKAGE, *self.target.partition(":")[0].split(".")).with_suffix(".py")
        return file.as_posix(), first + place, lines[place].strip()

    def _place(self, lines: list[str]) -> int:
        places = [i for i, line in enumerate(lines) if line.strip().startswith(self.old)]
        if len(places) != 1:
            raise InputError(f"{self.target} has {len(places)} lines that begin with {self.old!r}, so this bug cannot "
                             "be planted in it.")
        return places[0]

    def changed(self) -> CodeType:
        """The function's code with the line changed."""
        function = self.function()
        lines, first = getsourcelines(function)
        place = self._place(lines)
        indent = lines[place][: len(lines[place]) - len(lines[place].lstrip())]
        source = dedent("".join([*lines[:place], f"{indent}{self.new}\n", *lines[place + 1 :]]))
        module = compile("\n" * (first - 1) + source, function.__code__.co_filename, "exec", dont_inherit=True)
        return next(code for code in module.co_consts
                    if isinstance(code, CodeType) and code.co_name == function.__name__)


def active() -> tuple[Edit, ...]:
    """What is planted just now."""
    return tuple(_ACTIVE)


@contextmanager
def planted(edits: Sequence[Edit]) -> Iterator[None]:
    """While this lasts, the library has these lines changed."""
    codes = [edit.changed() for edit in edits]            # all can be made, or none is applied
    functions = [edit.function() for edit in edits]
    if len({id(function) for function in functions}) < len(functions):
        raise InputError("Two edits of one bug are in one function; write them as one.")
    with ExitStack() as stack:
        stack.callback(_ACTIVE.__setitem__, slice(None), list(_ACTIVE))
        _ACTIVE.extend(edits)
        for function, code in zip(functions, codes, strict=True):
            stack.callback(setattr, function, "__code__", function.__code__)
            function.__code__ = code
        yield
