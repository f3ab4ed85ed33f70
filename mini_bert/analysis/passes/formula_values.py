"""The value of a formula's text, computed in float64 by the rules of its notation.

It is a second computation of a step, written in nothing but the formula that is shown: where its value equals the
model's, the formula is the right one.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from math import pi, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.ops.gelu import normal_cdf
from ...core.ops.softmax import softmax_forward
from ...errors import InputError
from .formulas import read

Numbers = npt.NDArray[Any]


def evaluate(equations: Sequence[str], names: Mapping[str, Any], heads: int = 1) -> Numbers:
    """The right side of the first equation; the others say what names mean. `names` has the values of the rest."""
    known = dict(names)
    meanings = [(left, right) for left, right in (equation.split(" = ", 1) for equation in equations[1:])
                if left.isidentifier()]
    while meanings:                               # first those whose names are known
        left, right = meanings.pop(0)
        if set(re.findall(r"[A-Za-z]\w*", right)) & {name for name, _ in meanings}:
            meanings.append((left, right))
        else:
            known[left] = read(right, _Numbers(known, heads))
    value: Numbers = np.asarray(read(equations[0].split(" = ", 1)[1], _Numbers(known, heads)))
    return value


def _along(function: Callable[..., Any]) -> Callable[[Numbers], Numbers]:
    return lambda x: function(x, axis=-1, keepdims=True)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "mean": _along(np.mean), "sum": _along(np.sum), "sum_t": lambda x: x.sum(axis=0),
    "softmax": lambda x: softmax_forward(x)[0], "max": np.maximum, "min": np.minimum, "exp": np.exp, "log": np.log,
    "sqrt": np.sqrt, "tanh": np.tanh, "abs": np.abs, "Phi": lambda x: normal_cdf(np.atleast_1d(x))[0].reshape(x.shape),
    "phi": lambda x: np.exp(-(x**2) / 2) / sqrt(2 * pi), "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}


class _Numbers:
    """The language of formulas, in which every construct is an array."""

    def __init__(self, known: Mapping[str, Any], heads: int):
        self.known, self.heads = known, heads

    def number(self, text: str) -> Numbers:
        return np.float64(text)                   # type: ignore[return-value]

    def name(self, word: str) -> Any:
        if word == "T":
            return "T"                            # of a power: the transpose
        if word == "pi":
            return np.float64(pi)
        if word not in self.known:
            raise InputError(f"The formula's name {word!r} has no value.")
        return np.asarray(self.known[word], np.float64)

    def call(self, function: str, argument: Any) -> Numbers:
        if function == "split":
            return argument.reshape(len(argument), self.heads, -1).transpose(1, 0, 2)       # type: ignore[no-any-return]
        if function == "join":
            return argument.transpose(1, 0, 2).reshape(argument.shape[1], -1)               # type: ignore[no-any-return]
        known = self.known.get(function, _FUNCTIONS.get(function))
        if known is None:
            raise InputError(f"The formula's function {function!r} is not known.")
        found: Numbers = known(*argument) if isinstance(argument, tuple) else known(argument)
        return found

    def bracket(self, kind: str, inside: Numbers) -> Numbers:
        return inside

    def index(self, base: Numbers, index: Numbers) -> Numbers:
        found: Numbers = base[np.asarray(index).astype(int)]
        return found

    def power(self, base: Numbers, exponent: Any) -> Numbers:
        found: Numbers = base.swapaxes(-1, -2) if isinstance(exponent, str) else base**exponent
        return found

    def product(self, first: Numbers, rest: list[tuple[str, Numbers]]) -> Numbers:
        for sign, value in rest:
            if sign == "/":
                first = first / value
            elif sign == "*" or np.ndim(first) == 0 or np.ndim(value) == 0:
                first = first * value
            else:
                first = first @ value
        return first

    def sum(self, first: Numbers, rest: list[tuple[str, Numbers]]) -> Numbers:
        for sign, value in rest:
            first = first + value if sign == "+" else first - value
        return first

    def negative(self, value: Numbers) -> Numbers:
        return -value

    def relation(self, first: Numbers, rest: list[tuple[str, Numbers]]) -> Any:
        if rest[0][0] == ",":
            return (first, *(value for _, value in rest))
        (_, value), = rest
        return np.asarray(first > value, np.float64)
