"""A text on its way through normalizers and splits, with the characters of the original that each character is from.

    original    ﬁ  n  é           spans of the normalised text f i n e:
    normalised  f i  n  e         (0, 1) (0, 1) (1, 2) (2, 3)

A normalizer writes its result as a list of (character, change), as `tokenizers` does:

    0     the character takes the place of the next one of the text
    > 0   it is inserted, and has the span of the character before it
    -n    it takes the place of the next one, and n further ones are deleted
"""

from collections.abc import Iterable, Iterator
from re import Pattern

Span = tuple[int, int]                    # characters of the original, [start, end)
Change = tuple[str, int]


class AlignedText:
    """A text with a span for each character; immutable."""

    __slots__ = ("spans", "start", "text")

    def __init__(self, text: str, spans: list[Span], start: int):
        self.text, self.spans = text, spans
        self.start = start                # where in the original its part begins

    @classmethod
    def of(cls, text: str) -> "AlignedText":
        """A text that is its own original."""
        return cls(text, [(i, i + 1) for i in range(len(text))], 0)

    def span(self, start: int, end: int) -> Span:
        """The part of the original that these characters are from."""
        return self.spans[start][0], self.spans[end - 1][1]

    def slice(self, start: int, end: int) -> "AlignedText":
        return AlignedText(self.text[start:end], self.spans[start:end], self.spans[start][0] if start < end else start)

    def change(self, changes: Iterable[Change], skip: int = 0) -> "AlignedText":
        """The text that `changes` describe, after its first `skip` characters were deleted."""
        letters: list[str] = []
        spans: list[Span] = []
        old, place = self.spans, skip
        for letter, change in changes:
            letters.append(letter)
            if change > 0:
                spans.append(old[place - 1] if place else (self.start, self.start))
            else:
                spans.append(old[place])
                place += 1 - change
        return AlignedText("".join(letters), spans, self.start)

    def map(self, table: dict[int, str]) -> "AlignedText":
        """Every character replaced as by `str.translate`; the first letter of a replacement takes its place."""
        new = self.text.translate(table)
        if new == self.text:
            return self
        if len(new) == len(self.text):
            return AlignedText(new, self.spans, self.start)
        return self.change((letter, int(n > 0)) for character in self.text
                           for n, letter in enumerate(character.translate(table)))

    def keep(self, kept: Iterable[bool]) -> "AlignedText":
        """Only the characters for which `kept` is true."""
        places = [i for i, is_kept in enumerate(kept) if is_kept]
        if len(places) == len(self.text):
            return self
        return AlignedText("".join([self.text[i] for i in places]), [self.spans[i] for i in places], self.start)

    def replace(self, pattern: Pattern[str], content: str) -> "AlignedText":
        """Every match replaced; the new characters have the span of the last one of the match."""
        text, spans, done = "", [], 0
        for match in pattern.finditer(self.text):
            text += self.text[done : match.start()] + content
            spans += self.spans[done : match.start()] + [self.spans[match.end() - 1]] * len(content)
            done = match.end()
        return AlignedText(text + self.text[done:], spans + self.spans[done:], self.start) if done else self

    def prepend(self, content: str) -> "AlignedText":
        """Text before the first character, with its span; an empty text stays empty."""
        if not self.text:
            return self
        return AlignedText(content + self.text, self.spans[:1] * len(content) + self.spans, self.start)

    def cut(self, ends: Iterable[int]) -> "Iterator[AlignedText]":
        """The parts up to each of these places, without empty ones."""
        start = 0
        for end in ends:
            if end > start:
                yield self.slice(start, end)
            start = end
