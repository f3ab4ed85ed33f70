"""Activations as nodes, read from their formulas: one of your own is written without any further code.

The formula is the text that the explorer shows: {0} * sigmoid({0}). Its names and functions become nodes of ONNX.
"""

from collections.abc import Callable
from math import pi, sqrt
from typing import Any

from ...analysis.passes.formulas import read
from ...core.formulas import Formula
from ...core.ops import Activation
from ...errors import ConfigError
from .emitters import emits
from .graph import Graph, Value

Number = Value | float


@emits(Activation)
def activation(part: Activation, graph: Graph, x: Value) -> Value:
    return formula_value(part.formula, graph, x)


def formula_value(formula: Formula, graph: Graph, x: Value) -> Value:
    """The value of an element-wise formula of one input."""
    known: dict[str, Number] = {"x": x}
    language = _Nodes(graph, known)
    for equation in formula.where:
        left, right = equation.replace("{0}", "x").split(" = ", 1)
        if left.isidentifier():                        # others say what a function means that is known here
            known[left] = read(right, language)
    found = read(formula.forward.replace("{0}", "x"), language)
    return graph.constant(found)


def _pairwise(kind: str) -> Callable[..., Number]:
    return lambda graph, pair: graph.node(kind, *pair)


def _single(kind: str) -> Callable[..., Number]:
    return lambda graph, x: graph.node(kind, x)


def _sqrt(graph: Graph, x: Number) -> Number:
    return sqrt(x) if isinstance(x, float) else graph.node("Sqrt", x)


_FUNCTIONS: dict[str, Callable[..., Number]] = {
    "max": _pairwise("Max"), "min": _pairwise("Min"), "exp": _single("Exp"), "log": _single("Log"), "sqrt": _sqrt,
    "tanh": _single("Tanh"), "abs": _single("Abs"), "sigmoid": _single("Sigmoid"),
    "Phi": lambda graph, x: (graph.node("Erf", x / sqrt(2)) + 1.0) * 0.5,
    "phi": lambda graph, x: graph.node("Exp", x * x * -0.5) * (1 / sqrt(2 * pi)),
}


class _Nodes:
    """The language of formulas, in which every construct is a number or a value of the graph."""

    def __init__(self, graph: Graph, known: dict[str, Number]):
        self.graph, self.known = graph, known

    def number(self, text: str) -> Number:
        return float(text)

    def name(self, word: str) -> Number:
        if word == "pi":
            return pi
        if word not in self.known:
            raise _unknown(f"the name {word!r}")
        return self.known[word]

    def call(self, function: str, argument: Any) -> Number:
        if function not in _FUNCTIONS:
            raise _unknown(f"the function {function!r}")
        return _FUNCTIONS[function](self.graph, argument)

    def bracket(self, kind: str, inside: Number) -> Number:
        return inside

    def index(self, base: Number, index: Number) -> Number:
        raise _unknown("an index")

    def power(self, base: Number, exponent: Number) -> Number:
        return base**exponent                          # type: ignore[operator]

    def product(self, first: Number, rest: list[tuple[str, Number]]) -> Number:
        for sign, value in rest:
            if sign == " " and isinstance(first, Value) and isinstance(value, Value):
                raise _unknown("a product of matrices")
            first = first / value if sign == "/" else first * value
        return first

    def sum(self, first: Number, rest: list[tuple[str, Number]]) -> Number:
        for sign, value in rest:
            first = first + value if sign == "+" else first - value
        return first

    def negative(self, value: Number) -> Number:
        return -value

    def relation(self, first: Number, rest: list[tuple[str, Number]]) -> Any:
        if rest[0][0] == ",":
            return (first, *(value for _, value in rest))
        (_, value), = rest
        return self.graph.node("Greater", first, value).astype("float32")


def _unknown(what: str) -> ConfigError:
    return ConfigError(f"An activation's formula has {what}, which has no form in ONNX yet, so this model cannot be "
                       "written as ONNX.")
