"""Formulas as plain text, and from the same text as MathML or as numbers.

A formula is written as one would type it: S = Q K^T / sqrt(d_k). A space between two factors is a matrix product, *
the product element by element, / a fraction of all factors before it and the one behind it; A_b and A[b] are
subscripts, [a > b] is 1 where that holds and else 0. Greek letters are spelled out, and xhat is x with a hat. dX is the
gradient of the loss by X, whatever X is called; d_k alone is no gradient.

`read` parses a text once and hands each construct to a Language; MathML is one here, formula_values.py has another.
"""

import re
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import Any, Generic, Protocol, TypeVar

from ...errors import InputError

NAMESPACE = "http://www.w3.org/1998/Math/MathML"
_TOKEN = re.compile(r"\s*([^\W\d_]\w*'?|\d+(?:\.\d+)?|.)", re.DOTALL)
_GREEK = {"xhat": "x̂", "beta": "β", "gamma": "γ", "eps": "ε", "mu": "μ", "sigma": "σ", "Phi": "Φ",
          "phi": "φ", "pi": "π"}
_SIGNS = {"*": "⊙", "-": "−"}
_APPLY, _TIMES = "<mo>&#x2061;</mo>", "<mo>&#x2062;</mo>"         # invisible: a function's argument, a product
_GAP = '<mspace width="0.2em"/>'
Value = TypeVar("Value")


@dataclass(frozen=True)
class Equations:
    """The first is the formula itself; the others say what its names mean."""

    equations: tuple[str, ...]

    @property
    def text(self) -> str:
        return ", where ".join(self.equations[:1] + ((", ".join(self.equations[1:]),) if self.equations[1:] else ()))

    @property
    def mathml(self) -> str:
        """A <math> element; several equations are the rows of a table."""
        return _math(self.equations)

    def to_dict(self) -> dict[str, str]:
        return {"text": self.text, "mathml": self.mathml}


class Language(Protocol[Value]):
    """What the constructs of a formula become. A chain is a first value and (sign, value) pairs behind it."""

    def number(self, text: str) -> Value: ...
    def name(self, word: str) -> Value: ...
    def call(self, function: str, argument: Value) -> Value: ...
    def bracket(self, kind: str, inside: Value) -> Value:
        """(inside) or [inside]."""
    def index(self, base: Value, index: Value) -> Value: ...
    def power(self, base: Value, exponent: Value) -> Value: ...
    def product(self, first: Value, rest: list[tuple[str, Value]]) -> Value:
        """Signs are * for element by element, / for a fraction, and a space for a matrix product."""
    def sum(self, first: Value, rest: list[tuple[str, Value]]) -> Value: ...
    def negative(self, value: Value) -> Value: ...
    def relation(self, first: Value, rest: list[tuple[str, Value]]) -> Value:
        """Signs are =, > and the comma of a list."""


def read(text: str, language: Language[Value]) -> Value:
    """The text in this language."""
    return _Reader(text, language).whole()


class _Reader(Generic[Value]):
    """Recursive descent: relation, sum, product, power, atom."""

    def __init__(self, text: str, language: Language[Value]):
        self.text, self.language = text, language
        self.tokens = [(match[1], match.start() < match.start(1)) for match in _TOKEN.finditer(text.strip())]
        self.at = 0

    def whole(self) -> Value:
        found = self.relation()
        if self.at < len(self.tokens):
            raise InputError(f"The formula {self.text!r} cannot be read from {self.next()!r} on.")
        return found

    def next(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def take(self, expected: str | None = None) -> str:
        token = self.next()
        if not token or (expected is not None and token != expected):
            raise InputError(f"The formula {self.text!r} {f'has {token!r}' if token else 'ends'} where "
                             f"{repr(expected) if expected else 'a value'} belongs.")
        self.at += 1
        return token

    def relation(self) -> Value:
        first, rest = self.sum(), []
        while self.next() in ("=", ">", ","):
            rest.append((self.take(), self.sum()))
        return self.language.relation(first, rest) if rest else first

    def sum(self) -> Value:
        negative = self.next() == "-" and bool(self.take())
        first, rest = self.product(), []
        if negative:
            first = self.language.negative(first)
        while self.next() in ("+", "-"):
            rest.append((self.take(), self.product()))
        return self.language.sum(first, rest) if rest else first

    def product(self) -> Value:
        first, rest = self.power(), []
        while self.next() and self.next() not in "+-=>,)]":
            sign = self.take() if self.next() in "*/" else " "
            rest.append((sign, self.power()))
        return self.language.product(first, rest) if rest else first

    def power(self) -> Value:
        base = self.atom()
        if self.next() == "[" and not self.tokens[self.at][1]:      # an index is right behind its name
            self.take()
            base = self.language.index(base, self.relation())
            self.take("]")
        if self.next() == "^":
            self.take()
            base = self.language.power(base, self.atom())
        return base

    def atom(self) -> Value:
        token = self.take()
        if token in "([":
            inside = self.relation()
            self.take(")" if token == "(" else "]")
            return self.language.bracket(token, inside)
        if token[0].isdigit():
            return self.language.number(token)
        if not token[0].isalpha():
            raise InputError(f"The formula {self.text!r} has {token!r} where a name or a number belongs.")
        if self.next() == "(" and not self.tokens[self.at][1]:
            self.take()
            inside = self.relation()
            self.take(")")
            return self.language.call(token, inside)
        return self.language.name(token)


# -------------------------------------------------------------------- MathML


class _MathML:
    def number(self, text: str) -> str:
        return f"<mn>{text}</mn>"

    def name(self, word: str) -> str:
        if word[0] == "d" and len(word) > 1 and word[1] != "_":
            return f'<mrow><mi mathvariant="normal">d</mi>{self.name(word[1:])}</mrow>'
        letter, _, index = word.partition("_")
        shown = f"<mi>{_GREEK.get(letter, letter)}</mi>"
        below = f"<mn>{index}</mn>" if index.isdigit() else f"<mi>{index}</mi>"
        return f"<msub>{shown}{below}</msub>" if index else shown

    def call(self, function: str, argument: str) -> str:
        if function == "sqrt":
            return f"<msqrt>{argument}</msqrt>"
        return f"<mrow>{self.name(function)}{_APPLY}<mo>(</mo>{argument}<mo>)</mo></mrow>"

    def bracket(self, kind: str, inside: str) -> str:
        return f"<mrow><mo>{kind}</mo>{inside}<mo>{')' if kind == '(' else ']'}</mo></mrow>"

    def index(self, base: str, index: str) -> str:
        return f"<msub>{base}{index}</msub>"

    def power(self, base: str, exponent: str) -> str:
        return f"<msup>{base}{exponent}</msup>"

    def product(self, first: str, rest: list[tuple[str, str]]) -> str:
        parts = [first]
        for sign, value in rest:
            if sign == "/":
                parts = [f"<mfrac>{_row(parts)}{value}</mfrac>"]
            else:
                parts += [_times(value) if sign == " " else f"<mo>{_SIGNS[sign]}</mo>", value]
        return _row(parts)

    def sum(self, first: str, rest: list[tuple[str, str]]) -> str:
        return self.relation(first, rest)

    def negative(self, value: str) -> str:
        return f"<mrow><mo>{_SIGNS['-']}</mo>{value}</mrow>"

    def relation(self, first: str, rest: list[tuple[str, str]]) -> str:
        return _row([first, *(part for sign, value in rest for part in (f"<mo>{escape(_SIGNS.get(sign, sign))}</mo>",
                                                                       value))])


@cache
def _math(equations: tuple[str, ...]) -> str:
    rows = [read(equation, _MathML()) for equation in equations]
    inside = rows[0] if len(rows) == 1 else \
        "<mtable>" + "".join(f"<mtr><mtd>{row}</mtd></mtr>" for row in rows) + "</mtable>"
    return f'<math xmlns="{NAMESPACE}">{inside}</math>'


def _times(factor: str) -> str:
    """The sign of a product before this factor: a gap where the factor begins with a word."""
    return _TIMES + (_GAP if re.match(r"(<mrow>|<msub>)*<mi>[^<]{2}", factor) else "")


def _row(parts: list[Any]) -> str:
    return parts[0] if len(parts) == 1 else f"<mrow>{''.join(parts)}</mrow>"
