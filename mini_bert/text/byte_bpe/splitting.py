r"""GPT-2's splitting of a text into words; pieces never cross their borders, and nothing is lost between them.

    's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+

A word is a run of letters, of numbers or of other marks, with the space before it; English endings such as 's are words
of their own. Of a run of white space, the last character is left for the next word if it is a space, and is a word of
its own if not.

    Don't  say it's 100!   ->   Don | 't |   |  say |  it | 's |  100 | !

White space is found first. The chunks between it are split by the rest of the pattern, and repeat, so that what a chunk
becomes can be cached. `\p{L}` and `\p{N}` are written out from unicode_tables.py: `re` has no such classes.
"""

import re
from functools import cache

from .unicode_tables import LETTERS, NUMBERS, SPACES

_ENDINGS = "'(?:[stmd]|re|ve|ll)"
_ASCII = re.compile(rf"{_ENDINGS}| ?[A-Za-z]+| ?[0-9]+| ?[^ A-Za-z0-9]+")
_WHITE = re.compile(f"([{SPACES.pattern()}]+)")


@cache
def _any() -> re.Pattern[str]:
    """The pattern for every character; a chunk has no white space but the space at its beginning."""
    letters, numbers = LETTERS.pattern(), NUMBERS.pattern()
    return re.compile(f"{_ENDINGS}| ?[{letters}]+| ?[{numbers}]+| ?[^ {letters}{numbers}]+")


def chunk_words(chunk: str) -> list[str]:
    """The words of a chunk: what stands between white space, with at most one space before it, or white space alone."""
    if chunk.isascii():
        if chunk.isalpha():
            return [chunk]
        return [chunk] if chunk.isspace() else _ASCII.findall(chunk)
    return [chunk] if _WHITE.fullmatch(chunk) else _any().findall(chunk)


def simple_chunks(text: str) -> list[str] | None:
    """What stands between the spaces, if all white space is single spaces between words, as in most text."""
    found = text.split()
    return found if " ".join(found) == text else None


def chunks(text: str) -> list[str]:
    """The text cut before the space that begins a word, and around other white space."""
    simple = simple_chunks(text)
    if simple is not None:
        return [*simple[:1], *(" " + chunk for chunk in simple[1:])]
    parts = _WHITE.split(text)                # chunk, white space, ..., chunk; the first and the last may be empty
    found = [parts[0]]
    for white, chunk in zip(parts[1::2], parts[2::2], strict=True):
        if not chunk:
            found.append(white)               # at the end of the text
        elif white[-1] == " ":
            found += [white[:-1], " " + chunk]
        else:
            found += [white[:-1], white[-1], chunk]
    return [chunk for chunk in found if chunk]


def words(text: str) -> list[str]:
    """The words of a text; joined, they are the text."""
    return [word for chunk in chunks(text) for word in chunk_words(chunk)]
