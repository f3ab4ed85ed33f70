"""BERT's view of characters: text becomes words, punctuation marks and ideographs, separated by spaces.

The steps of the reference:

1. clean: control characters vanish, white space becomes a space
2. set each CJK ideograph apart
3. uncased models: decompose (NFD), drop non-spacing marks, lower-case
4. split at spaces, and set each punctuation mark apart

All but one look at a character at a time. So a character has one replacement, whatever stands beside it: it is
worked out once and kept, and a text is normalised by `str.translate`.

The one is NFD, which sorts consecutive marks by their combining class. That can be seen only where step 3 leaves
a mark standing, which is rare: a text with such a mark is first put `canonical_order`.
"""

import re
import string
from collections.abc import Iterable, Iterator
from functools import cache
from unicodedata import combining, normalize

from .unicode_tables import CJK, COMBINING, DECOMPOSED, LOWER, MARKS, PUNCTUATION, REMOVED, SPACES, STANDING

_STANDING = frozenset(STANDING)

# a word, or a punctuation mark, of printable ASCII
_ASCII_WORDS = re.compile(r"[A-Za-z0-9]+|[^A-Za-z0-9 ]")

# of ASCII: punctuation marks are set apart, and what str.split() takes for white space but BERT deletes goes
# (as does U+0085); no other character's bytes in UTF-8 are among these
_SEEN = {ord(mark): (mark, f" {mark} ") for mark in string.punctuation} \
    | {ord(control): (control, "") for control in "\x0b\x0c\x1c\x1d\x1e\x1f"}
_ORDINARY = bytes(byte for byte in range(256) if byte not in _SEEN)


class Normaliser(dict[int, str]):
    """For `str.translate`: code point -> what becomes of it, with spaces where words are set apart."""

    def __init__(self, lowercase: bool, strip_accents: bool):
        super().__init__()
        self.lowercase, self.strip_accents = lowercase, strip_accents

    def __missing__(self, code: int) -> str:
        self[code] = replacement = self._replace(chr(code))
        return replacement

    def _replace(self, character: str) -> str:
        if character in SPACES:
            return " "
        if _vanishes(character):
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
        """The text cut at white space and at punctuation marks of ASCII; words never reach beyond a chunk.

        Chunks are still to be normalised, but they repeat far more often than what stands between spaces.
        """
        if self.lowercase and text.isascii():
            text = text.lower()
        found = text.encode("utf-8", "surrogatepass").translate(None, _ORDINARY)      # the quickest way to see
        for byte in set(found):
            text = text.replace(*_SEEN[byte])
        if "\x85" in text:
            text = text.replace("\x85", "")
        return text.split()

    def words(self, text: str) -> list[str]:
        """The normalised words of a text."""
        if text.isascii() and text.isprintable():           # most are
            cased = text.lower() if self.lowercase else text
            if cased.isalnum():
                return [cased]
            return _ASCII_WORDS.findall(cased)
        if self._sorts(text):
            text = "".join(character for _, character in canonical_order(text))
        return text.translate(self).split()

    def characters(self, text: str) -> Iterable[tuple[int, str]]:
        """What is to be replaced, in its order, and the place in the text that each character comes from."""
        return canonical_order(text) if self._sorts(text) else enumerate(text)


def _vanishes(character: str) -> bool:
    return character in REMOVED or "\ud800" <= character <= "\udfff"        # half a pair is no character


def _decompose(character: str) -> str:
    return normalize("NFD", character) if character in DECOMPOSED else character


def canonical_order(text: str) -> Iterator[tuple[int, str]]:
    """The text cleaned and decomposed, with each run of marks sorted by combining class, and the places.

    As in the reference, places are not sorted along. The first part of a character takes the next place, where it
    comes to stand; a further part shares the place of what then stands before it.
    """
    places: list[int] = []
    parts: list[tuple[int, int, bool, str]] = []
    run = 0                                                 # marks are sorted up to the next character that is none
    for place, character in enumerate(text):
        if _vanishes(character):
            continue
        places.append(place)
        for number, part in enumerate(_decompose(character)):
            order = combining(part) if part in COMBINING else 0
            run += order == 0
            parts.append((run, order, number > 0, part))
    parts.sort(key=lambda part: part[:2])                   # stable: what is of one class keeps its order
    taken = -1
    for _, _, further, part in parts:
        taken += not further
        yield places[taken], part


@cache
def normaliser(lowercase: bool, strip_accents: bool) -> Normaliser:
    """The table for a kind of normalisation; one for all tokenizers."""
    return Normaliser(lowercase, strip_accents)
