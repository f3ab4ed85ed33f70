r"""GPT-2's splitting of a text into words; pieces never cross their borders, and nothing is lost between them.

    's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+

A word is a run of letters, of numbers or of other marks, with the space before it; English endings such as 's are words
of their own. Of a run of white space, the last character is left for the next word if it is a space, and is a word of
its own if not.

    Don't  say it's 100!   ->   Don | 't |   |  say |  it | 's |  100 | !

`\p{L}`, `\p{N}` and `\s` are written out from unicode_tables.py: `re` lacks the first two, and its white space differs.
These classes are long, and slow to search, so runs of ASCII that end before ASCII are tried first.
"""

import re
from functools import cache

from .unicode_tables import LETTERS, NUMBERS, SPACES

_ENDINGS = "'(?:[stmd]|re|ve|ll)"
_MARKS = r"\0-\x08\x0e-\x1f!-/:-@[-`{-\x7f"               # what is neither letter, number nor white space


def _runs(letters: str, numbers: str, marks: str, then: str = "") -> str:
    """A run of each class, with the space before it, if `then` follows it."""
    return "|".join((f" ?[{letters}]++{then}", _ENDINGS, f" ?[{numbers}]++{then}", f" ?[{marks}]++{then}"))


def _white(spaces: str) -> str:
    return f"[{spaces}]+(?![^{spaces}])|[{spaces}]"


_ASCII = re.compile(f"{_runs('A-Za-z', '0-9', _MARKS)}|{_white(chr(9) + '-' + chr(13) + ' ')}")


@cache
def _any() -> re.Pattern[str]:
    """The pattern for every character."""
    letters, numbers, spaces = LETTERS.pattern(), NUMBERS.pattern(), SPACES.pattern()
    ascii_runs = _runs("A-Za-z", "0-9", _MARKS, r"(?![^\0-\x7f])")
    return re.compile(f"{ascii_runs}|{_runs(letters, numbers, f'^{spaces}{letters}{numbers}')}|{_white(spaces)}")


def words(text: str) -> list[str]:
    """The words of a text; joined, they are the text."""
    return (_ASCII if text.isascii() else _any()).findall(text)
