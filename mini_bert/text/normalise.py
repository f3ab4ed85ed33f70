"""BERT's view of characters: text becomes words, punctuation marks and ideographs, separated by spaces.

The steps of the reference, each of which looks at one character at a time:

1. clean: control characters vanish, white space becomes a space
2. set each CJK ideograph apart
3. uncased models: decompose (NFD), drop non-spacing marks, lower-case
4. split at spaces, and set each punctuation mark apart

So a character has one replacement, whatever stands beside it. It is worked out once and kept, and a text is
normalised by `str.translate`. (NFD also sorts consecutive marks; those that step 3 does not drop belong to
no vocabulary.)
"""

import re
from functools import cache
from unicodedata import normalize

from .unicode_tables import CJK, LOWER, MARKS, PUNCTUATION, REMOVED, SPACES

# str.split() takes these for white space; BERT deletes them
_FALSE_SPACES = re.compile("[\x0b\x0c\x1c-\x1f\x85]")


class Replacements(dict[int, str]):
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
        if character in REMOVED or "\ud800" <= character <= "\udfff":       # half a pair is no character
            return ""
        letters = character
        if self.strip_accents:
            letters = "".join(part for part in normalize("NFD", letters) if part not in MARKS)
        if self.lowercase:
            letters = "".join(LOWER.get(ord(part)) or part.lower() for part in letters)
        apart = "".join(f" {letter} " if letter in PUNCTUATION else letter for letter in letters)
        return f" {apart} " if character in CJK else apart


@cache
def replacements(lowercase: bool, strip_accents: bool) -> Replacements:
    """The table for a kind of normalisation; one for all tokenizers."""
    return Replacements(lowercase, strip_accents)


def chunks(text: str) -> list[str]:
    """The text cut at white space, as BERT understands it. Words never reach beyond a chunk."""
    if _FALSE_SPACES.search(text):
        text = _FALSE_SPACES.sub("", text)
    return text.split()
