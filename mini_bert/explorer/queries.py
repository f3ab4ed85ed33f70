"""What a request may ask for: read, checked and limited before a model sees it."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import NoReturn

from ..errors import InputError

LONGEST_TEXT = 2000           # characters
LONGEST_WORD = 100            # characters of a target
LARGEST_RATE = 100.0
MOST_EDITS = 64

Parameters = Mapping[str, str]


@dataclass(frozen=True)
class Query:
    """A sentence, the positions that are masked, and the words to predict there, if not the original ones."""

    text: str
    mask: tuple[int, ...] = ()
    targets: tuple[tuple[int, str], ...] = ()
    pair: str = ""                        # a second sentence beside the first


def read_query(parameters: Parameters) -> Query:
    """text=..., mask=3,5 and target=3:word; target may be left out, or give several, one a line; pair=... too."""
    text, pair = _text(parameters.get("text", "")), _text(parameters.get("pair", ""))
    if not text.strip():
        raise InputError("There is no text: type a sentence.")
    mask = tuple(sorted(set(whole_numbers(parameters.get("mask", ""), "mask"))))
    targets = tuple(_target(line) for line in parameters.get("target", "").split("\n") if line)
    return Query(text, mask, targets, pair if pair.strip() else "")


def _text(text: str) -> str:
    if len(text) > LONGEST_TEXT:
        raise InputError(f"The text has {len(text)} characters; the explorer takes {LONGEST_TEXT}.")
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise InputError("The text is not UTF-8.")
    return text


@dataclass(frozen=True)
class Edit:
    """One number of a parameter, and what it is to be."""

    name: str
    index: tuple[int, ...]
    value: float


def read_edits(text: str) -> list[Edit]:
    """NAME:ROW,COLUMN:VALUE, one a line."""
    lines = [line for line in text.split("\n") if line]
    if len(lines) > MOST_EDITS:
        raise InputError(f"There are {len(lines)} edits; the explorer takes {MOST_EDITS}.")
    return [_edit(line) for line in lines]


def _edit(line: str) -> Edit:
    name, _, rest = line.partition(":")
    place, _, text = rest.partition(":")
    value = finite_number(text)
    if not name or value is None:
        raise InputError("An edit is a parameter, a place in it and a number, such as W_Q_0:3,5:0.7, not "
                         f"{line[:80]!r}.")
    return Edit(name, tuple(whole_numbers(place, "edit")), value)


def read_heads(text: str) -> list[tuple[int, int]]:
    """LAYER.HEAD with commas between them, such as 0.1,2.3."""
    found = []
    for part in text.split(",") if text else []:
        layer, _, head = part.partition(".")
        found.append((whole_numbers(layer, "off")[0], whole_numbers(head, "off")[0])
                     if layer and head else _no_head(part))
    return found


def _no_head(text: str) -> NoReturn:
    raise InputError(f"A head is its layer and its number, such as 0.1, not {text[:40]!r}.")


def finite_number(text: str) -> float | None:
    """None for what is no number."""
    try:
        value = float(text)
    except (TypeError, ValueError):
        return None
    return value if isfinite(value) else None


def _target(line: str) -> tuple[int, str]:
    position, _, word = line.partition(":")
    if not position or not word:
        raise InputError(f"A target is a position and a word, such as 3:cat, not {line[:LONGEST_WORD]!r}.")
    if len(word) > LONGEST_WORD:
        raise InputError(f"A target of {len(word)} characters is no word; the explorer takes {LONGEST_WORD}.")
    return whole_numbers(position, "target")[0], word


def whole_numbers(text: str, name: str) -> list[int]:
    """Numbers with commas between them."""
    numbers = text.split(",") if text else []
    if len(numbers) > LONGEST_TEXT or not all(n.isascii() and n.isdecimal() and len(n) <= 9 for n in numbers):
        raise InputError(f"{name} must be whole numbers with commas between them, such as 3,5, not {text[:40]!r}.")
    return [int(number) for number in numbers]


def index_of(parameters: Parameters) -> tuple[int, ...]:
    """index=row,column, or with heads index=head,row,column."""
    index = tuple(whole_numbers(required(parameters, "index"), "index"))
    if not 1 <= len(index) <= 3:
        raise InputError(f"index must be one to three whole numbers, such as 3,5, not {len(index)}.")
    return index


def required(parameters: Parameters, name: str) -> str:
    if not parameters.get(name):
        raise InputError(f"The parameter {name} is missing.")
    return parameters[name]


def learning_rate(text: str) -> float:
    rate = finite_number(text)
    if rate is None or not 0 < rate <= LARGEST_RATE:
        raise InputError(f"The learning rate must be a number above 0 and at most {LARGEST_RATE:g}, not "
                         f"{str(text)[:40]!r}.")
    return rate
