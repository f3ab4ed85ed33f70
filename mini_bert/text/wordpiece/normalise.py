"""BERT's normalisation: text becomes words, punctuation marks and ideographs, separated by spaces.

The steps of the reference:

1. clean: delete control characters, replace white space by spaces
2. separate each CJK ideograph
3. uncased models: decompose (NFD), delete non-spacing marks, lower-case
4. split at spaces, and separate each punctuation mark

All steps but one treat each character by itself. So every character has one replacement, which is computed once and
cached, and `str.translate` normalises a text.

The exception is NFD, which sorts consecutive marks by their combining class. This matters only if step 3 keeps a mark,
which is rare; such a text is put into `canonical_order` first.
"""

import re
import string
from collections.abc import Iterable, Iterator
from functools import cache
from unicodedata import combining, normalize

from .unicode_tables import CJK, COMBINING, DECOMPOSED, LOWER, MARKS, PUNCTUATION, REMOVED, SPACES, STANDING

_STANDING = frozenset(STANDING)

# words and punctuation marks of printable ASCII
_ASCII_WORDS = re.compile(r"[A-Za-z0-9]+|[^A-Za-z0-9 ]")

# ASCII bytes to replace before splitting: punctuation marks are separated, and control characters that BERT deletes
# but str.split() takes for white space are removed; no multi-byte UTF-8 character contains one of these bytes
_REPLACED = {ord(mark): (mark, f" {mark} ") for mark in string.punctuation} \
    | {ord(control): (control, "") for control in "\x0b\x0c\x1c\x1d\x1e\x1f"}
_UNCHANGED = bytes(byte for byte in range(256) if byte not in _REPLACED)


class Normaliser(dict[int, str]):
    """A table for `str.translate`: code point -> replacement, with spaces around separate words."""

    def __init__(self, lowercase: bool, strip_accents: bool):
        super().__init__()
        self.lowercase, self.strip_accents = lowercase, strip_accents

    def __missing__(self, code: int) -> str:
        self[code] = replacement = self._replace(chr(code))
        return replacement

    def _replace(self, character: str) -> str:
        if character in SPACES:
            return " "
        if _is_deleted(character):
            return ""
        letters = character
        if self.strip_accents:
            letters = "".join(part for part in _decompose(letters) if part not in MARKS)
        if self.lowercase:
            letters = "".join(LOWER.get(ord(part)) or part.lower() for part in letters)
        apart = "".join(f" {letter} " if letter in PUNCTUATION else letter for letter in letters)
        return f" {apart} " if character in CJK else apart

    def _sorts(self, text: str) -> bool:
        return self.strip_accents and not _STANDING.isdisjoint(text)

    def chunks(self, text: str) -> list[str]:
        """The text split at white space and ASCII punctuation; no word crosses the border of a chunk.

        Chunks are not normalised yet. They repeat far more often than strings between spaces, which helps caching.
        """
        if self.lowercase and text.isascii():
            text = text.lower()
        found = text.encode("utf-8", "surrogatepass").translate(None, _UNCHANGED)     # the fastest way to find them
        for byte in set(found):
            text = text.replace(*_REPLACED[byte])
        if "\x85" in text:
            text = text.replace("\x85", "")
        return text.split()

    def words(self, text: str) -> list[str]:
        """The normalised words of a text."""
        if text.isascii() and text.isprintable():           # the common case
            cased = text.lower() if self.lowercase else text
            if cased.isalnum():
                return [cased]
            return _ASCII_WORDS.findall(cased)
        if self._sorts(text):
            text = "".join(character for _, character in canonical_order(text))
        return text.translate(self).split()

    def characters(self, text: str) -> Iterable[tuple[int, str]]:
        """(position in the text, character) of the characters to translate, in order."""
        return canonical_order(text) if self._sorts(text) else enumerate(text)


def _is_deleted(character: str) -> bool:
    return character in REMOVED or "\ud800" <= character <= "\udfff"        # a lone surrogate


def _decompose(character: str) -> str:
    return normalize("NFD", character) if character in DECOMPOSED else character


def canonical_order(text: str) -> Iterator[tuple[int, str]]:
    """(position, character) of the cleaned and decomposed text, with runs of marks sorted by combining class.

    As in the reference, positions are not sorted with the marks: in the sorted text, the first part of each character
    takes the next position, and each further part takes the position of what precedes it.
    """
    places: list[int] = []
    parts: list[tuple[int, int, bool, str]] = []
    run = 0                                                 # a run of marks ends at the next base character
    for place, character in enumerate(text):
        if _is_deleted(character):
            continue
        places.append(place)
        for number, part in enumerate(_decompose(character)):
            order = combining(part) if part in COMBINING else 0
            run += order == 0
            parts.append((run, order, number > 0, part))
    parts.sort(key=lambda part: part[:2])                   # stable: marks of one class keep their order
    taken = -1
    for _, _, further, part in parts:
        taken += not further
        yield places[taken], part


@cache
def normaliser(lowercase: bool, strip_accents: bool) -> Normaliser:
    """The table for these settings, shared by all tokenizers."""
    return Normaliser(lowercase, strip_accents)
