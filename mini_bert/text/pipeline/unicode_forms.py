"""Unicode's normalisation forms, with the changes that each character stands for.

    NFD    é -> e + ◌́          a letter and its accents, each a character of its own, accents in a fixed order
    NFC    e + ◌́ -> é          the same, and then composed as far as possible
    NFKD   ﬁ -> f + i           as NFD, and what only looks different (ligatures, wide letters, ½) is written plainly
    NFKC                        as NFKD, and then composed

`unicodedata` has the forms but not the alignment, and each version of Python has a newer Unicode than `tokenizers`. So
its tables are used only for characters that the reference knows.
"""

from collections.abc import Iterable, Iterator
from unicodedata import combining, is_normalized, normalize

from ..wordpiece.unicode_tables import COMBINING, DECOMPOSED
from .aligned import AlignedText, Change, Span
from .unicode_tables import COMPATIBLE


def to_form(form: str, text: AlignedText) -> AlignedText:
    """The text in NFC, NFD, NFKC or NFKD."""
    if text.text.isascii():
        return text
    parts = decompositions(text.text, compatible="K" in form)
    return text.change(compositions(parts) if form.endswith("C") else parts)


def nfc(text: str) -> tuple[str, list[Span] | None]:
    """The text in NFC, and the place of each character in `text`; None if the text is composed already."""
    if text.isascii() or is_normalized("NFC", text):
        return text, None
    composed = to_form("NFC", AlignedText.of(text))
    return composed.text, composed.spans


def _class(character: str) -> int:
    return combining(character) if character in COMBINING else 0


def decompositions(text: str, compatible: bool) -> Iterator[Change]:
    """The parts of every character; runs of accents sorted by combining class."""
    run: list[tuple[int, Change]] = []
    for character in text:
        parts = character
        if compatible and character in COMPATIBLE:
            parts = normalize("NFKD", character)
        elif character in DECOMPOSED:
            parts = normalize("NFD", character)
        for number, part in enumerate(parts):
            order = _class(part)
            if order == 0:
                yield from _sorted(run)
                run = []
            run.append((order, (part, int(number > 0))))
    yield from _sorted(run)


def _sorted(run: list[tuple[int, Change]]) -> Iterator[Change]:
    return (change for _, change in sorted(run, key=lambda part: part[0]))       # stable within a class


def compositions(parts: Iterable[Change]) -> Iterator[Change]:
    """Each starter composed with the accents after it that nothing blocks.

    An accent is blocked if one before it, which stayed, has the same combining class or a higher one.
    """
    starter: Change | None = None
    left: list[Change] = []               # accents that did not compose with the starter
    last = -1                             # the class of the last of them; -1 if there is none
    for letter, change in parts:
        order = _class(letter)
        if starter is None:
            if order:
                yield letter, change
            else:
                starter = letter, change
            continue
        composed = None if 0 <= order <= last else compose(starter[0], letter)
        if composed is not None:
            starter = composed, starter[1] + change - 1
        elif order == 0:
            yield starter
            yield from left
            starter, left, last = (letter, change), [], -1
        else:
            left.append((letter, change))
            last = order
    if starter is not None:
        yield starter
        yield from left


def compose(first: str, second: str) -> str | None:
    """The one character that is canonically equal to these two."""
    both = normalize("NFC", first + second)
    return both if len(both) == 1 and both in DECOMPOSED else None
