"""Detokenization: pieces to readable text, with words joined and spaces where they are usual.

Tokenization loses the spaces, so rules restore them. If a mark has two uses, the more common one decides:

- a decimal point joins digits, but not after four digits, which are more often a year at the end of a sentence
- a comma joins groups of three digits if the whole list can be one number: 1,000,000 but 1990, 20
- a colon or en dash between digits, and a hyphen, slash, -- or em dash between words, have no spaces: 10:30,
  well-known; an en dash between words has spaces
- an apostrophe is joined before s t d m ll re ve and after o d l; elsewhere it may be a quotation mark and keeps its
  spaces
- double quotation marks open and close in turn; an unpaired last one keeps its spaces
"""

import re
from collections.abc import Iterable

from ..vocabulary import CONTINUATION, SPECIAL_TOKENS

_QUOTED = re.compile(r'" ([^"]*) "')
_NUMBERS = re.compile(r"(?<![\d.])\d+(?: , \d+)+")
_ONE_NUMBER = re.compile(r"[1-9]\d{0,2}(?: , \d{3})+")
_RULES = [(re.compile(pattern, re.IGNORECASE), to) for pattern, to in (
    (r"(?<=\w) (['’]) (?=(?:s|t|d|m|ll|re|ve)\b)", r"\1"),
    (r"(?<!\w)([odl]) (['’]) (?=\w)", r"\1\2"),
    (r"(?<!\d)(\d{1,3}|\d{5,}) \. (?=\d)", r"\1."),
    (r"(?<=\d) ([:–]) (?=\d)", r"\1"),
    (r"(?<=-) (?=-)", ""),
    (r"(?<=\w) (-+|/|—) (?=\w)", r"\1"),
    (r" (?=[.,;:!?%)\]}’”])", ""),
    (r"(?<=[(\[{“‘]) ", ""),
    (r"(?<!\w)([$£€]) (?=[\d\0])", r"\1"),            # at the end of a word, it is a letter of the word
)]


def detokenize(pieces: Iterable[str]) -> str:
    """Join pieces to text: don ' t -> don't, 3 . 14 -> 3.14, ( yes ) . -> (yes)."""
    text = " ".join(pieces).replace(f" {CONTINUATION}", "")
    marks = [(token, f"\0{n}\0") for n, token in enumerate(SPECIAL_TOKENS) if token in text]
    for token, mark in marks:               # so that the brackets of [MASK] are not punctuation
        text = text.replace(token, mark)
    text = _QUOTED.sub(r'"\1"', text)
    text = _NUMBERS.sub(_grouped, text)
    for pattern, to in _RULES:
        text = pattern.sub(to, text)
    for token, mark in marks:
        text = text.replace(mark, token)
    return text


def _grouped(numbers: re.Match[str]) -> str:
    """A list of numbers, or one number with thousands separators."""
    return numbers[0].replace(" , ", "," if _ONE_NUMBER.fullmatch(numbers[0]) else ", ")
