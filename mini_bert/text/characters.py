"""Sets of characters, as ranges of code points."""

from bisect import bisect_right
from collections.abc import Iterator


class CharacterSet:
    """A set of characters given as hexadecimal ranges such as "41-5a 5f"."""

    def __init__(self, ranges: str):
        bounds = [part.split("-") for part in ranges.split()]
        self._starts = [int(bound[0], 16) for bound in bounds]
        self._ends = [int(bound[-1], 16) for bound in bounds]

    def __contains__(self, character: str) -> bool:
        c = ord(character)
        place = bisect_right(self._starts, c) - 1
        return place >= 0 and c <= self._ends[place]

    def __iter__(self) -> Iterator[str]:
        for start, end in zip(self._starts, self._ends, strict=True):
            yield from map(chr, range(start, end + 1))

    def pattern(self) -> str:
        """The inside of a character class of `re`."""
        return "".join(f"\\U{start:08x}-\\U{end:08x}" for start, end in zip(self._starts, self._ends, strict=True))
