"""NFC, the normalisation before ModernBERT's tokenizer: letters and the marks on them are composed, e + ´ -> é.

Three steps: characters are decomposed; runs of marks are sorted by their combining classes; then each letter is
composed with the marks behind it, as far as there is a character for both, and no mark of the same or a higher class
stands between.

Positions follow the reference, which counts them along: a composed character takes the position of its letter, and
skips those of its marks; a part of a decomposed character, but for the first, takes the last position before it.
"""

from collections.abc import Iterable
from functools import cache
from unicodedata import combining, decomposition, is_normalized, normalize

from ..wordpiece.unicode_tables import COMBINING, DECOMPOSED

Places = list[tuple[int, int]]            # of each character, its characters in the original text, [start, end)
_HANGUL, _L, _V, _T = 0xAC00, 0x1100, 0x1161, 0x11A7
_VOWELS, _ENDS = 21, 28


def nfc(text: str) -> tuple[str, Places | None]:
    """The composed text, and the place of each character; None if the text is composed already."""
    if text.isascii() or is_normalized("NFC", text):
        return text, None
    composed: list[tuple[str, int]] = []
    starter: tuple[str, int] | None = None                    # the letter that the marks after it may join
    marks: list[tuple[str, int]] = []                         # those that did not, in order
    for letter, further in _sorted_parts(text):
        order = _order(letter)
        if starter is not None and (not marks or _order(marks[-1][0]) < order):
            joined = _compose(starter[0], letter)
            if joined is not None:
                starter = joined, starter[1] + further - 1
                continue
        if order:
            (composed if starter is None else marks).append((letter, further))
        else:
            composed += [starter, *marks] if starter is not None else []
            starter, marks = (letter, further), []
    composed += [starter, *marks] if starter is not None else []
    return "".join(letter for letter, _ in composed), _places(change for _, change in composed)


def _places(changes: Iterable[int]) -> Places:
    """Places from the changes: 1 if a character was added, 0 if it replaces one, -n if it replaces one and n more."""
    found: Places = []
    at = 0
    for change in changes:
        if change > 0:
            found.append((max(at - 1, 0), at))
        else:
            found.append((at, at + 1))
            at += 1 - change
    return found


def _order(letter: str) -> int:
    return combining(letter) if letter in COMBINING else 0


def _sorted_parts(text: str) -> list[tuple[str, int]]:
    """(part, 1 if it is not the first of its character) of the decomposed text, runs of marks sorted by class."""
    run = 0
    parts: list[tuple[int, int, str, int]] = []
    for character in text:
        for number, part in enumerate(normalize("NFD", character) if character in DECOMPOSED else character):
            order = _order(part)
            run += order == 0
            parts.append((run, order, part, int(number > 0)))
    parts.sort(key=lambda part: part[:2])                     # stable: marks of one class keep their order
    return [(part, further) for _, _, part, further in parts]


def _compose(first: str, second: str) -> str | None:
    """The character that is both, if there is one. Syllables of Hangul are counted, others are in a table."""
    a, b = ord(first), ord(second)
    if _L <= a < _L + 19 and _V <= b < _V + _VOWELS:
        return chr(_HANGUL + ((a - _L) * _VOWELS + b - _V) * _ENDS)
    if _HANGUL <= a < _HANGUL + 11172 and (a - _HANGUL) % _ENDS == 0 and _T < b < _T + _ENDS:
        return chr(a + b - _T)
    return _composites().get((first, second))


@cache
def _composites() -> dict[tuple[str, str], str]:
    """(letter, mark) -> the character of both, but for those that are never composed."""
    found = {}
    for character in DECOMPOSED:
        parts = decomposition(character).split()
        if len(parts) == 2 and not parts[0].startswith("<") and normalize("NFC", character) == character:
            found[chr(int(parts[0], 16)), chr(int(parts[1], 16))] = character
    return found
