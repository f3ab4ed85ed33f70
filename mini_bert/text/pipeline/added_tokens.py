"""Added tokens: words that are found in a text by their names before anything else happens to it, such as [MASK].

    special        left out when ids are decoded without special tokens
    lstrip         takes the white space before it along (RoBERTa's <mask> takes the space of "a <mask>"); rstrip, that
                   after it
    single_word    found only where no letter or digit is next to it
    normalized     looked for in the normalised text, spelled as its own normalisation
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...errors import VocabularyError
from .patterns import SPACES
from .unicode_tables import WORD

WHITE_SPACE = "".join(sorted(SPACES))
FLAGS = ("special", "lstrip", "rstrip", "normalized", "single_word")


class AddedToken(NamedTuple):
    """A token that is found by its name."""

    content: str
    id: int
    special: bool = True
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = False
    single_word: bool = False

    def to_json(self) -> dict[str, Any]:
        """An entry of `added_tokens` of tokenizer.json."""
        return {"id": self.id, "content": self.content, "single_word": self.single_word, "lstrip": self.lstrip,
                "rstrip": self.rstrip, "normalized": self.normalized, "special": self.special}


class Found(NamedTuple):
    """A part of a text, [start, end): a token, or text between tokens."""

    token: AddedToken | None
    start: int
    end: int


class Finder:
    """Finds tokens in a text, the leftmost first, and of those the longest."""

    def __init__(self, tokens: Sequence[AddedToken] | Mapping[str, AddedToken]):
        named = tokens if isinstance(tokens, Mapping) else {token.content: token for token in tokens}
        self.tokens = {name: token for name, token in named.items() if name}      # by how it is spelled in the text
        longest_first = sorted(self.tokens, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)))
        beginnings = {name[:2] for name in self.tokens}
        self.beginnings = beginnings if len(beginnings) <= 8 else {""}        # a text with a token has one of these

    def may_have(self, text: str) -> bool:
        """False if there is no token in the text; True says nothing."""
        return any(beginning in text for beginning in self.beginnings)

    def has(self, text: str) -> bool:
        """Is there a name in the text, at whatever place?"""
        return self.may_have(text) and self._pattern.search(text) is not None

    def split(self, text: str) -> Iterator[Found]:
        """Tokens and what is between them, in order."""
        done = 0
        for match in self._pattern.finditer(text) if self.tokens and self.may_have(text) else ():
            token = self.tokens[match[0]]
            start, end = match.span()
            around = text[max(start - 1, 0) : start] + text[end : end + 1]
            if token.single_word and any(letter in WORD for letter in around):
                continue
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


class AddedTokens:
    """The added tokens of a tokenizer: those found in the text as it is, and those found after normalisation."""

    def __init__(self, tokens: Sequence[AddedToken], normalise: Callable[[str], str] = str):
        self.tokens = sorted(tokens, key=lambda token: token.id)
        raw: dict[str, AddedToken] = {}
        normalised: dict[str, AddedToken] = {}
        for token in sorted(self.tokens, key=lambda token: not token.special):       # of equal spelling, special ones
            if token.normalized:
                normalised.setdefault(normalise(token.content), token)
            else:
                raw.setdefault(token.content, token)
        self.raw, self.normalised = Finder(raw), Finder(normalised)
        self.spelled = {token.id: spelled for spelled, token in normalised.items()}       # where it is not `content`
        self.special = frozenset(token.id for token in tokens if token.special)


def read_added_tokens(content: Any, ids: Mapping[str, int], source: str) -> list[AddedToken]:
    """`added_tokens` of a tokenizer.json, whose other pieces have these ids; new ones must follow on them."""
    tokens: list[AddedToken] = []
    following = len(ids)
    if not isinstance(content, list | None):
        raise VocabularyError(f"{source}: added_tokens must be a list.")
    for entry in content or []:
        name = entry.get("content") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not name or any(not isinstance(entry.get(flag, False), bool) for flag in FLAGS):
            raise VocabularyError(f"{source}: each of added_tokens must have a content, an id, and true or false for "
                                  f"{', '.join(FLAGS)}.")
        wanted = ids.get(name, following)
        if type(entry.get("id")) is not int or entry["id"] != wanted or any(name == token.content for token in tokens):
            raise VocabularyError(f"{source}: the added token {name[:60]!r} has the id {str(entry.get('id'))[:40]}; it "
                                  f"must be there once, with the id {wanted}.")
        following += name not in ids
        tokens.append(AddedToken(name, entry["id"], *(bool(entry.get(flag, False)) for flag in FLAGS)))
    return tokens
