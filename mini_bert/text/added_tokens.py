"""Added tokens: words that are found in a text before anything else happens to it, such as [MASK].

    special        left out when ids are decoded without special tokens
    lstrip         takes the white space before it along; rstrip, that after it
    single_word    found only where no letter or digit is next to it
    normalized     looked for in the normalised text, spelled as its own normalisation
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import VocabularyError
from .unigram.patterns import SPACE
from .unigram.unicode_tables import WORD

_SPACES_AFTER, _SPACES_BEFORE = re.compile(f"[{SPACE}]*"), re.compile(f"[{SPACE}]")
FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")


class AddedToken(NamedTuple):
    """A token with its id and flags."""

    id: int
    content: str
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = False
    special: bool = True

    def to_json(self) -> dict[str, Any]:
        return dict(self._asdict())


class TokenFinder:
    """Finds tokens in a text, the leftmost first, and of those the longest."""

    def __init__(self, tokens: Mapping[str, AddedToken]):
        self.tokens = tokens                      # how it is spelled in the text -> the token
        longest_first = sorted(filter(None, tokens), key=len, reverse=True)
        self.pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def split(self, text: str) -> Iterator[tuple[int, int, AddedToken | None]]:
        """(start, end, token) of the parts of a text in order; the token is None between tokens."""
        done = 0
        for match in self.pattern.finditer(text) if self.pattern is not None else ():
            token = self.tokens[match[0]]
            start, end = match.span()
            if token.single_word and (text[start - 1 : start] in WORD_OR_NONE or text[end : end + 1] in WORD_OR_NONE):
                continue
            if token.lstrip:
                while start > done and _SPACES_BEFORE.match(text[start - 1]):
                    start -= 1
            if token.rstrip:
                end += len(_SPACES_AFTER.match(text, end)[0])         # type: ignore[index]
            if done < start:
                yield done, start, None
            yield start, end, token
            done = end
        if done < len(text):
            yield done, len(text), None


class _WordOrNone:
    """Is this a character of a word? No text at all is not."""

    def __contains__(self, character: str) -> bool:
        return bool(character) and character in WORD


WORD_OR_NONE = _WordOrNone()


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
        self.raw, self.normalised = TokenFinder(raw), TokenFinder(normalised)
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
        tokens.append(AddedToken(entry["id"], name, *(bool(entry.get(flag, False)) for flag in FLAGS)))
    return tokens
