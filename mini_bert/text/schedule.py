"""A setting that changes over a run.

    0.15                      stays
    0.4 -> 0.15               on a straight line from the first value to the second, over the whole run
    16 -> 64 over 0.6         over the first 60 % of the run; then it stays at the second value
    64 until 0.9, 128         one value after another; the word `then` may stand for the comma

Numbers after `over` and `until` are shares of the run. A line in a later piece begins where the piece begins:
`0.4 until 0.2, 0.4 -> 0.15` is level for the first fifth. Words cannot be on a line: `sentences until 0.7, packed`.

A schedule is a function of the share of the run that is done. So it holds for a number of steps and for a budget of
time, and a resumed run continues on it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, Self, TypeVar, cast

from ..errors import ConfigError
from ..settings import coerce

Value = TypeVar("Value", bound=int | float | str)
_EXAMPLES: dict[type, str] = {float: "0.4 -> 0.15 over 0.6", int: "64 until 0.9, 128",
                              str: "sentences until 0.7, packed"}


class Step(int):
    """The number of a step, and how long its run is: `batches[Step(3, 100)]`.

    A plain number stands at the beginning of a run, whose length nobody knows.
    """

    total: int                    # steps of the run; 0 if it is not known

    def __new__(cls, number: int, total: int = 0) -> Self:
        made = super().__new__(cls, number)
        made.total = total
        return made

    @property
    def share(self) -> float:
        """The share of the run that is done before this step."""
        return min(self / self.total, 1.0) if self.total else 0.0


def share_of(step: int) -> float:
    """The share of its run that is done before a step."""
    return step.share if isinstance(step, Step) else 0.0


@dataclass(frozen=True)
class _Piece(Generic[Value]):
    """From the share `begin` to `end`: a line from `first` to `last` over `over` of the run, then `last`."""

    first: Value
    last: Value
    begin: float
    over: float
    end: float

    def at(self, share: float) -> Value:
        if self.first == self.last or share >= self.begin + self.over:
            return self.last
        first, last = cast(float, self.first), cast(float, self.last)
        value = first + (last - first) * max(share - self.begin, 0.0) / self.over
        return cast(Value, round(value) if isinstance(self.last, int) else value)

    def __str__(self) -> str:
        line = f" -> {self.last}" if self.first != self.last else ""
        return f"{self.first}{line}" + (f" over {self.over}" if line and self.over < self.end - self.begin else "")


class Schedule(Generic[Value]):
    """The values of a setting over a run: `schedule.at(0.5)`, or `schedule(step)`."""

    def __init__(self, pieces: list[_Piece[Value]]):
        self.pieces: tuple[_Piece[Value], ...] = tuple(pieces)

    @classmethod
    def parse(cls, given: Value | str, kind: type[Value], name: str = "A schedule") -> "Schedule[Value]":
        """The schedule that a text writes, with values of this kind; a value by itself stays. `name` is for errors."""
        if not isinstance(given, str):
            value = coerce(name, given, kind)
            return cls([_Piece(value, value, 0.0, 1.0, 1.0)])
        return cls(list(_Reader(given, kind, name).pieces()))

    def at(self, share: float) -> Value:
        """The value when this share of the run is done."""
        return next((piece for piece in self.pieces if share < piece.end), self.pieces[-1]).at(share)

    def __call__(self, step: int) -> Value:
        return self.at(share_of(step))

    @property
    def constant(self) -> bool:
        return len(set(self.values)) == 1

    @property
    def values(self) -> list[Value]:
        """What it begins and ends its pieces with; all other values lie between two of these."""
        return [value for piece in self.pieces for value in (piece.first, piece.last)]

    def __str__(self) -> str:
        *before, last = self.pieces
        return "".join(f"{piece} until {piece.end}, " for piece in before) + str(last)


class _Reader(Generic[Value]):
    """Recursive descent:  schedule = piece (, piece)*     piece = value [-> value [over share]] [until share]"""

    def __init__(self, text: str, kind: type[Value], name: str):
        self.text, self.name, self.at = text, name, 0
        self.kind: type[Value] = kind
        self.tokens = re.findall(r"->|,|[^\s,>]+?(?=->)|[^\s,]+", text)

    def pieces(self) -> Iterator[_Piece[Value]]:
        if len(self.text) > 1000:
            raise ConfigError(f"{self.name}: a schedule has at most 1,000 characters, not {len(self.text):,}.")
        begin, last = 0.0, False
        while not last:
            first = self.value()
            last_value = self.value() if (line := self.takes("->")) else first
            if line and self.kind is str:
                raise self.error(f"there is nothing between {first} and {last_value}")
            over = self.share("over") if line and self.takes("over") else None
            end = self.share("until") if self.takes("until") else 1.0
            last = not (self.takes(",") or self.takes("then"))
            if last and self.at < len(self.tokens):
                raise self.error(f"{self.tokens[self.at]!r} is not expected there")
            if last and end < 1:
                raise self.error("nothing follows when the last value ends")
            if not last and end == 1:
                raise self.error("a value that another one follows needs `until` and a share of the run below 1")
            if end <= begin:
                raise self.error(f"{end:g} is not after {begin:g}")
            if over is not None and begin + over > end + 1e-9:
                raise self.error(f"a line over {over:g} that begins at {begin:g} goes beyond {end:g}")
            yield _Piece(first, last_value, begin, end - begin if over is None else over, end)
            begin = end

    def takes(self, token: str) -> bool:
        found = self.tokens[self.at : self.at + 1] == [token]
        self.at += found
        return found

    def take(self, wanted: str) -> str:
        if self.at == len(self.tokens) or self.tokens[self.at] in ("->", ",", "over", "until", "then"):
            where = f"before {self.tokens[self.at]!r}" if self.at < len(self.tokens) else "at its end"
            raise self.error(f"{wanted} is missing {where}")
        self.at += 1
        found: str = self.tokens[self.at - 1]
        return found

    def value(self) -> Value:
        return cast(Value, coerce(self.name, self.take("a value"), self.kind))

    def share(self, word: str) -> float:
        text = self.take(f"a share of the run after `{word}`")
        try:
            share = float(text)
        except ValueError:
            share = float("nan")
        if not 0 < share <= 1:
            raise self.error(f"{text!r} is not a share of the run between 0 and 1")
        return share

    def error(self, reason: str) -> ConfigError:
        return ConfigError(f"{self.name}: {self.text[:100]!r} is not a schedule, as {reason}; write one value, or a "
                           f"schedule such as {_EXAMPLES[self.kind]}.")
