"""Formulas as plain text, and from the same text as MathML.

A formula is written as one would type it: S = Q K^T / sqrt(d_k). A space between two factors is a matrix product, *
the product element by element, / a fraction of all factors before it and the one behind it; A_b and A[b] are
subscripts, [a > b] is 1 where that holds and else 0. Greek letters are spelled out, and xhat is x with a hat. dX is the
gradient of the loss by X, whatever X is called; d_k alone is no gradient.
"""

import re
from dataclasses import dataclass
from functools import cache
from html import escape

from ...errors import InputError

NAMESPACE = "http://www.w3.org/1998/Math/MathML"
_TOKEN = re.compile(r"\s*([^\W\d_]\w*'?|\d+(?:\.\d+)?|.)", re.DOTALL)
_GREEK = {"xhat": "x̂", "beta": "β", "gamma": "γ", "eps": "ε", "mu": "μ", "sigma": "σ", "Phi": "Φ",
          "phi": "φ", "pi": "π"}
_SIGNS = {"*": "⊙", "-": "−"}
_APPLY, _TIMES = "<mo>&#x2061;</mo>", "<mo>&#x2062;</mo>"         # invisible: a function's argument, a product


@dataclass(frozen=True)
class Formula:
    """Equations, the first one the formula itself, the others what its names mean."""

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


@cache
def _math(equations: tuple[str, ...]) -> str:
    rows = [_Reader(equation).whole() for equation in equations]
    inside = rows[0] if len(rows) == 1 else \
        "<mtable>" + "".join(f"<mtr><mtd>{row}</mtd></mtr>" for row in rows) + "</mtable>"
    return f'<math xmlns="{NAMESPACE}">{inside}</math>'


class _Reader:
    """Recursive descent: equation, sum, product, power, atom."""

    def __init__(self, text: str):
        self.text = text
        self.tokens = [(match[1], match.start() < match.start(1)) for match in _TOKEN.finditer(text.strip())]
        self.at = 0

    def whole(self) -> str:
        found = self.equation()
        if self.at < len(self.tokens):
            raise InputError(f"The formula {self.text!r} cannot be read from {self.next()!r} on.")
        return found

    def next(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def take(self, expected: str | None = None) -> str:
        token = self.next()
        if not token or (expected is not None and token != expected):
            raise InputError(f"The formula {self.text!r} has {token or 'its end'!r} where {expected or 'more'!r} "
                             "belongs.")
        self.at += 1
        return token

    def equation(self) -> str:
        parts = [self.sum()]
        while self.next() in ("=", ">", ","):
            parts += [f"<mo>{escape(self.take())}</mo>", self.sum()]
        return _row(parts)

    def sum(self) -> str:
        parts = [f"<mo>{_SIGNS['-']}</mo>"] if self.next() == "-" and self.take() else []
        parts.append(self.product())
        while self.next() in ("+", "-"):
            sign = self.take()
            parts += [f"<mo>{_SIGNS.get(sign, sign)}</mo>", self.product()]
        return _row(parts)

    def product(self) -> str:
        parts = [self.power()]
        while self.next() and self.next() not in "+-=>,)]":
            if self.next() == "/":
                self.take()
                parts = [f"<mfrac>{_row(parts)}{self.power()}</mfrac>"]
            elif self.next() == "*":
                self.take()
                parts += [f"<mo>{_SIGNS['*']}</mo>", self.power()]
            else:
                parts += [_TIMES, self.power()]
        return _row(parts)

    def power(self) -> str:
        base = self.atom()
        if self.next() == "[" and not self.tokens[self.at][1]:      # an index stands right behind its name
            self.take()
            base = f"<msub>{base}{self.equation()}</msub>"
            self.take("]")
        if self.next() == "^":
            self.take()
            base = f"<msup>{base}{self.atom()}</msup>"
        return base

    def atom(self) -> str:
        token = self.take()
        if token in "([":
            inside = self.equation()
            return f"<mrow><mo>{token}</mo>{inside}<mo>{self.take(')' if token == '(' else ']')}</mo></mrow>"
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        if not token[0].isalpha():
            raise InputError(f"The formula {self.text!r} has {token!r} where a name or a number belongs.")
        if self.next() == "(" and not self.tokens[self.at][1]:
            self.take()
            inside = self.equation()
            self.take(")")
            if token == "sqrt":
                return f"<msqrt>{inside}</msqrt>"
            return f"<mrow>{_name(token)}{_APPLY}<mo>(</mo>{inside}<mo>)</mo></mrow>"
        return _name(token)


def _name(word: str) -> str:
    if word[0] == "d" and len(word) > 1 and word[1] != "_":
        return f'<mrow><mi mathvariant="normal">d</mi>{_name(word[1:])}</mrow>'
    letter, _, index = word.partition("_")
    shown = f"<mi>{_GREEK.get(letter, letter)}</mi>"
    return f"<msub>{shown}{_index(index)}</msub>" if index else shown


def _index(index: str) -> str:
    return f"<mn>{index}</mn>" if index.isdigit() else f"<mi>{index}</mi>"


def _row(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"<mrow>{''.join(parts)}</mrow>"
