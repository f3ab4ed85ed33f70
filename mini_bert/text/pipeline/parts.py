"""The way of a text to the parts that the model segments.

    added tokens in the text as it is -> normalizers -> added tokens of the normalised text -> pre-tokenizers

and, for natural text, the parts of one word by itself: `words_of` gives them if the words between single spaces do not
depend on each other, which holds for almost all of it. Then the ids of a word can be cached.
"""

import re
from collections.abc import Iterator, Sequence

from ..wordpiece.unicode_tables import COMBINING
from .added_tokens import AddedToken, AddedTokens
from .aligned import AlignedText
from .normalizers import Normalizer
from .patterns import SPACES
from .pre_tokenizers import Metaspace, PreTokenizer, split_at_spaces
from .unicode_tables import ACCENTS, JOINED, PREPENDED

_SURROGATES = re.compile("[\ud800-\udfff]")


class Pipeline:
    """Normalizers, pre-tokenizers and added tokens."""

    def __init__(self, normalizers: Sequence[Normalizer], pre_tokenizers: Sequence[PreTokenizer],
                 added: Sequence[AddedToken], *, local: bool = False):
        self.normalizers, self.pre_tokenizers = tuple(normalizers), tuple(pre_tokenizers)
        self.added = AddedTokens(added, lambda text: self.normalise(AlignedText.of(text)).text)
        self._mark = next((part.replacement for part in pre_tokenizers if isinstance(part, Metaspace)), "")
        self.by_words = local and self._splits_into_words() and not any(
            space in token for finder in (self.added.raw, self.added.normalised) for token in finder.tokens
            for space in SPACES)

    def _splits_into_words(self) -> bool:
        """Does each word between spaces get a mark in front, the first like the others?"""
        last = self.pre_tokenizers[-1] if self.pre_tokenizers else None
        if not isinstance(last, Metaspace) or not last.split:
            return False
        before = self.pre_tokenizers[:-1]
        return (before == (split_at_spaces,) and last.prepend == "always") or (not before and last.prepend != "never")

    def normalise(self, text: AlignedText) -> AlignedText:
        for normalizer in self.normalizers:
            text = normalizer(text)
        return text

    def parts(self, text: str) -> Iterator[tuple[AlignedText, AddedToken | None]]:
        """The parts of a text in order, each with its token if it is an added one."""
        original = AlignedText.of(_SURROGATES.sub("\ufffd", text))
        for token, start, end in self.added.raw.split(original.text):
            part = original.slice(start, end)
            if token is not None:
                yield part, token
                continue
            part = self.normalise(part)
            for token, inner_start, inner_end in self.added.normalised.split(part.text):
                inner = part.slice(inner_start, inner_end)
                if token is not None:
                    yield inner, token
                else:
                    yield from ((word, None) for word in self._pre_tokenized(inner, 0) if word.text)

    def _pre_tokenized(self, text: AlignedText, done: int) -> Iterator[AlignedText]:
        if done == len(self.pre_tokenizers):
            yield text
            return
        for part in self.pre_tokenizers[done](text):
            if part.text:
                yield from self._pre_tokenized(part, done + 1)

    def words_of(self, chunk: str) -> list[str] | None:
        """The parts of a chunk between single spaces, if they are the same in every text; None if they may not be."""
        if not self.by_words or not chunk or _SURROGATES.search(chunk) or self.added.raw.has(chunk):
            return None
        first, last = chunk[0], chunk[-1]
        if (not first.isascii() and (first in JOINED or first in ACCENTS or first in COMBINING)) or \
                (not last.isascii() and last in PREPENDED):
            return None
        text = AlignedText.of(chunk)
        for step in (None, *self.normalizers):
            text = step(text) if step is not None else text
            if not text.text or text.text[0] in SPACES or text.text[-1] in SPACES:
                return None
        mark = self._mark
        if mark in text.text or self.added.normalised.has(text.text):
            return None
        if SPACES.isdisjoint(text.text):
            return [mark + text.text]
        return [word.text for word in self._pre_tokenized(text, 0)]
