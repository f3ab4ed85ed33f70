"""Planting a bug: one term of the library's own code is changed, and later restored.

A term is named by the function that computes it and by what it assigns: `dx -=` in layernorm_backward. The code of the
function is exchanged inside the function object, so everybody who has imported it runs the changed term, and nobody
does afterwards. The files on disk are never touched.
"""

import ast
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
    """One term of a function of the library, and the code that takes its place."""

    target: str               # such as core.modules.blocks.post_ln:PostLNLayer.backward
    term: str                 # such as "dx -=", "m_factor, root =", "return", or "if key_mask"
    new: str
    number: int = 0           # which of several terms of that name

    def function(self) -> FunctionType:
        module, _, path = self.target.partition(":")
        found: Any = import_module(f"{_PACKAGE}.{module}")
        function: FunctionType = reduce(getattr, path.split("."), found)
        return function

    def line(self) -> tuple[str, int, str]:
        """The file, the number and the text of the term's line."""
        lines, first = getsourcelines(self.function())
        place = self._find(_tree(lines)).lineno - 1
        file = Path(_PACKAGE, *self.target.partition(":")[0].split(".")).with_suffix(".py")
        return file.as_posix(), first + place, lines[place].strip()

    def _find(self, tree: ast.Module) -> ast.stmt:
        found = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and _term(node) == self.term]
        if self.number >= len(found):
            raise InputError(f"{self.target} has {len(found)} terms {self.term!r}, so this bug cannot be planted.")
        return sorted(found, key=lambda node: node.lineno)[self.number]

    def changed(self) -> CodeType:
        """The function's code with the term changed."""
        function = self.function()
        lines, first = getsourcelines(function)
        tree = _tree(lines)
        old, new = self._find(tree), ast.parse(self.new).body
        if isinstance(old, ast.If):           # its condition is the term
            old.test = new[0].value  # type: ignore[attr-defined]
        else:
            tree = _Replaced(old, new).visit(tree)
        ast.fix_missing_locations(tree)
        ast.increment_lineno(tree, first - 1)
        module = compile(tree, function.__code__.co_filename, "exec", dont_inherit=True)
        return next(code for code in module.co_consts
                    if isinstance(code, CodeType) and code.co_name == function.__name__)


def _tree(lines: Sequence[str]) -> ast.Module:
    return ast.parse(dedent("".join(lines)))


def _term(node: ast.stmt) -> str:
    """The name of a statement: what it assigns, or what it is about."""
    if isinstance(node, ast.Assign):
        return f"{ast.unparse(node.targets[0]).strip('()')} ="
    if isinstance(node, ast.AugAssign):
        sign = ast.unparse(ast.AugAssign(ast.Name("x"), node.op, ast.Name("y"))).split()[1]
        return f"{ast.unparse(node.target)} {sign}"
    if isinstance(node, ast.Return):
        return "return"
    if isinstance(node, ast.If):
        name = next((part.id for part in ast.walk(node.test) if isinstance(part, ast.Name)), "")
        return f"if {name}"
    return ""


class _Replaced(ast.NodeTransformer):
    def __init__(self, old: ast.stmt, new: list[ast.stmt]):
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> Any:
        if node is not self.old:
            return self.generic_visit(node)
        return [ast.copy_location(statement, self.old) for statement in self.new]


def active() -> tuple[Edit, ...]:
    """What is planted just now."""
    return tuple(_ACTIVE)


@contextmanager
def planted(edits: Sequence[Edit]) -> Iterator[None]:
    """While this lasts, the library has these terms changed."""
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
