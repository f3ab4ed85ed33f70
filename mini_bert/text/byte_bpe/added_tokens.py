"""Tokens that are found in a text by their names before it is split: special tokens such as <mask>, and others.

A token may take the white space before it (`lstrip`: RoBERTa's <mask> takes the space of "a <mask>") or after it. Names
with `normalized` are looked for in the normalised text, the others before. Of names that begin at the same place, the
longest wins.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from .unicode_tables import SPACES

WHITE_SPACE = "".join(SPACES)


class AddedToken(NamedTuple):
    """A token that is found by its name."""

    content: str
    id: int
    special: bool = True
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = False

    def to_json(self) -> dict[str, Any]:
        """An entry of `added_tokens` of tokenizer.json."""
        return {"id": self.id, "content": self.content, "single_word": False, "lstrip": self.lstrip,
                "rstrip": self.rstrip, "normalized": self.normalized, "special": self.special}


class Found(NamedTuple):
    """A part of a text, [start, end): a token, or text between tokens."""

    token: AddedToken | None
    start: int
    end: int


class Finder:
    """Finds tokens in a text."""

    def __init__(self, tokens: Sequence[AddedToken]):
        self._tokens = {token.content: token for token in tokens if token.content}
        longest_first = sorted(self._tokens, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)))
        beginnings = {name[:2] for name in self._tokens}
        self.beginnings = beginnings if len(beginnings) <= 8 else {""}        # a text with a token has one of these

    def split(self, text: str) -> Iterator[Found]:
        """Tokens and what is between them, in order."""
        done = 0
        for match in self._pattern.finditer(text) if self._tokens else ():
            token = self._tokens[match[0]]
            start, end = match.span()
            if token.lstrip:
                start = done + len(text[done:start].rstrip(WHITE_SPACE))
            if token.rstrip:
                end = len(text) - len(text[end:].lstrip(WHITE_SPACE))
            if done < start:
                yield Found(None, done, start)
            yield Found(token, start, end)
            done = end
        if done < len(text):
            yield Found(None, done, len(text))
