"""What a request may ask for: read, checked and limited before a model sees it."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from ..errors import InputError

LONGEST_TEXT = 2000           # characters
LONGEST_WORD = 100            # characters of a target
LARGEST_RATE = 100.0

Parameters = Mapping[str, str]


@dataclass(frozen=True)
class Query:
    """A sentence, the positions that are masked, and the words to predict there, if not the original ones."""

    text: str
    mask: tuple[int, ...] = ()
    targets: tuple[tuple[int, str], ...] = ()


def read_query(parameters: Parameters) -> Query:
    """text=..., mask=3,5 and target=3:word; target may be left out, or give several, one a line."""
    text = parameters.get("text", "")
    if len(text) > LONGEST_TEXT:
        raise InputError(f"The text has {len(text)} characters; the explorer takes {LONGEST_TEXT}.")
    if not text.strip():
        raise InputError("There is no text: type a sentence.")
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise InputError("The text is not UTF-8.")
    mask = tuple(sorted(set(whole_numbers(parameters.get("mask", ""), "mask"))))
    return Query(text, mask, tuple(_target(line) for line in parameters.get("target", "").split("\n") if line))


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
    try:
        rate = float(text)
    except (TypeError, ValueError):
        rate = float("nan")
    if not (isfinite(rate) and 0 < rate <= LARGEST_RATE):
        raise InputError(f"The learning rate must be a number above 0 and at most {LARGEST_RATE:g}, not "
                         f"{str(text)[:40]!r}.")
    return rate
