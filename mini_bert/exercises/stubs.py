"""The file that a learner starts with: the solution without the body of the function to write."""

import ast
from inspect import getsource

from .exercise import Exercise

_TODO = "raise NotImplementedError"


def solution_source(exercise: Exercise) -> str:
    """The source of the solution."""
    return getsource(exercise.solution)


def stub_source(exercise: Exercise) -> str:
    """The solution without that body; the formula, the forward, the signature and the shapes stay."""
    source = solution_source(exercise)
    lines = source.splitlines()
    function = next(node for node in ast.parse(source).body
                    if isinstance(node, ast.FunctionDef) and node.name == exercise.writes)
    docstring, first = function.body[0], function.body[1]
    indent = " " * first.col_offset
    return "\n".join([*lines[: docstring.end_lineno or 0], f"{indent}{_TODO}          # write here",
                      *lines[function.end_lineno or len(lines) :], ""])
