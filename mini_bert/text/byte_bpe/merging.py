"""From the bytes of a word to pieces: merges by rank.

A word starts as single bytes. Of all pairs of neighbours that the list of merges has, the one with the lowest rank is
merged, the leftmost first; this repeats until no pair is left.

    merges  0: h e   1: t he   2: o t   3: ot he          o t h e  ->  o t he  ->  o the

`by_rank` does just this, for any list of merges. Lists that were learned are regular: every merge makes a new piece
out of pieces that were there before it. Then the same pieces are found faster, from left to right (`from_left`). This
rests on two facts, which tests/text/test_byte_bpe.py tries on random lists:

- Two pieces can stand next to each other if no merge across their border comes before those that made them. To see
  that, both are taken apart at the border, the one that was made last first, and the rank of each pair met on the way
  is compared with the ranks of what has been taken apart (`fits`).
- If all neighbours fit, the pieces are those of `by_rank`: only one sequence of pieces has this property.

So the longest piece that fits the one before it is taken, and a shorter one if that leads nowhere. A piece that is not
the result of merging its own bytes, as only an odd list has, is never taken.
"""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise

from ...errors import VocabularyError

_REMEMBERED = 1 << 20         # pairs of pieces


class Merger:
    """The pieces, their bytes, and the merges: (left id, right id, merged id) in the order of their ranks."""

    def __init__(self, spelled: dict[int, bytes], merges: Sequence[tuple[int, int, int]],
                 single: Sequence[int | None], *, unk: int | None = None):
        self.spelled = spelled            # the bytes of single bytes and of merged pieces, by id
        self.single = single              # the ids of the 256 bytes
        self.unk = unk
        self.rank = {(left, right): (rank, made) for rank, (left, right, made) in enumerate(merges)}
        self.made = dict.fromkeys((i for i in single if i is not None), -1)       # piece -> the rank of its merge
        self.halves: dict[int, tuple[int, int]] = {}
        self.pieces: dict[bytes, int] = {}                    # what `from_left` may take
        self.longest = [0] * 256                              # of those, by their first byte
        self._fits: dict[tuple[int, int], bool] = {}
        self.regular = self._is_regular(merges)

    def _is_regular(self, merges: Sequence[tuple[int, int, int]]) -> bool:
        if None in self.single or len(self.rank) < len(merges):
            return False
        for rank, (left, right, made) in enumerate(merges):
            if made in self.made or left not in self.made or right not in self.made:
                return False
            self.made[made], self.halves[made] = rank, (left, right)
        whole = set(self.single)                              # pieces that merging their own bytes gives
        for rank, (left, right, made) in enumerate(merges):
            if left in whole and right in whole and self._fit(left, right, rank):
                whole.add(made)
        for piece in whole:
            if piece is not None:
                spelled = self.spelled[piece]
                self.pieces[spelled] = piece
                self.longest[spelled[0]] = max(self.longest[spelled[0]], len(spelled))
        return True

    def __call__(self, word: bytes) -> list[int]:
        """The ids of a word."""
        return self.from_left(word) if self.regular else self.by_rank(word)

    # ---------------------------------------------------------------- the definition

    def by_rank(self, word: bytes) -> list[int]:
        """The ids of a word, merged pair by pair; a heap has the pairs by rank and place."""
        symbols = self._symbols(word)
        following = [*range(1, len(symbols)), -1]
        previous = list(range(-1, len(symbols) - 1))
        rank = self.rank
        heap = [(found[0], place, found[1]) for place, pair in enumerate(pairwise(symbols))
                if (found := rank.get(pair)) is not None]
        heapify(heap)
        while heap:
            _, place, made = heappop(heap)
            after = following[place]
            if symbols[place] < 0 or after < 0 or rank.get((symbols[place], symbols[after]), (0, -1))[1] != made:
                continue                                      # one of them has been merged since
            symbols[place], symbols[after] = made, -1
            following[place] = following[after]
            if following[place] >= 0:
                previous[following[place]] = place
            for left, right in ((previous[place], place), (place, following[place])):
                if left >= 0 and right >= 0 and (found := rank.get((symbols[left], symbols[right]))):
                    heappush(heap, (found[0], left, found[1]))
        return [symbol for symbol in symbols if symbol >= 0]

    def _symbols(self, word: bytes) -> list[int]:
        """The ids of the single bytes; those that the vocabulary lacks are unknown, or left out if it cannot say so."""
        symbols = [self.unk if (symbol := self.single[byte]) is None else symbol for byte in word]
        return [symbol for symbol in symbols if symbol is not None]

    # ---------------------------------------------------------------- the same, from left to right

    def from_left(self, word: bytes) -> list[int]:
        """The ids of a word: the longest piece that fits the one before it."""
        pieces, longest = self.pieces, self.longest
        whole = pieces.get(word)
        if whole is not None:
            return [whole]
        found: list[int] = []
        starts: list[int] = []
        dead: set[int] = set()                                # ends after which nothing fits
        start, end = 0, min(len(word), longest[word[0]]) if word else 0
        while start < len(word):
            while end > start:
                piece = pieces.get(word[start:end])
                if piece is not None and end not in dead and (not found or self.fits(found[-1], piece)):
                    found.append(piece)
                    starts.append(start)
                    start = end
                    end = min(len(word), start + longest[word[start]]) if start < len(word) else start
                    break
                end -= 1
            else:                                             # take back the last piece, and try a shorter one
                if not found:
                    raise VocabularyError("The merges of the vocabulary contradict each other.")
                dead.add(start)
                found.pop()
                start, end = starts.pop(), start - 1
        return found

    def fits(self, left: int, right: int) -> bool:
        """Can these pieces stand next to each other?"""
        known = self._fits.get((left, right))
        if known is None:
            if len(self._fits) >= _REMEMBERED:
                self._fits.clear()
            known = self._fits[left, right] = self._fit(left, right, len(self.rank))
        return known

    def _fit(self, left: int, right: int, limit: int) -> bool:
        """Does no merge of a rank below `limit`, or below what is taken apart, join them at their border?"""
        rank, made = self.rank, self.made
        while True:
            across = rank.get((left, right))
            if across is not None and across[0] < limit:
                return False
            if made[left] > made[right]:
                limit, left = made[left], self.halves[left][1]
            elif made[right] >= 0:                            # of equal ranks, the left one was merged first
                limit, right = made[right] + 1, self.halves[right][0]
            else:
                return True
