"""From the bytes of a word to pieces: merges by rank.

A word starts as single bytes. Of all pairs of neighbours that the list of merges has, the one with the lowest rank is
merged, the leftmost first; this repeats until no pair is left.

    merges  0: h e   1: t he   2: o t   3: ot he          o t h e  ->  o t he  ->  o the

A short word looks through all of its pairs for every merge; a long one keeps them in a heap.

Many words of a text are pieces themselves, and need no merging if it is known that merging ends with that piece. A list
of merges that was learned is regular: every merge makes a new piece, out of pieces that were there before it. Then a
piece is the result of merging its own bytes if this is so of its two halves, and if no merge across their border comes
before the one that joins them. To see that, the halves are taken apart at the border, the one that was made last first,
and the ranks of the pairs met on the way are compared with the rank of what has been taken apart (`_stays_apart`).
"""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise

SHORT = 50                    # bytes of a word
_NEVER = 1 << 60              # the rank of a pair that is not merged
_NONE = -1                    # the id of a byte that is left out


class Merger:
    """The merges, as (left id, right id, merged id) in the order of their ranks.

    `spelled` has the bytes of each piece, by id, and `single` the ids of the 256 bytes; bytes that have none become
    `unk`, or are left out if that is None.
    """

    def __init__(self, spelled: dict[int, bytes], merges: Sequence[tuple[int, int, int]],
                 single: Sequence[int | None], *, unk: int | None = None):
        self.spelled, self.single = spelled, single
        self.symbols = [(_NONE if unk is None else unk) if symbol is None else symbol for symbol in single]
        self._complete = _NONE not in self.symbols
        self.made = [made for *_, made in merges]                                     # by rank
        self.rank = {(left, right): rank for rank, (left, right, _) in enumerate(merges)}
        self.whole = self._whole_pieces(merges)

    def __call__(self, word: bytes) -> list[int]:
        """The ids of a word."""
        piece = self.whole.get(word)
        if piece is not None:
            return [piece]
        return self.by_search(word) if len(word) <= SHORT else self.by_heap(word)

    def _symbols(self, word: bytes) -> list[int]:
        symbols = list(map(self.symbols.__getitem__, word))
        return symbols if self._complete else [symbol for symbol in symbols if symbol != _NONE]

    def by_search(self, word: bytes) -> list[int]:
        """Merge pair by pair, and look for the lowest rank each time."""
        rank, symbols = self.rank.get, self._symbols(word)
        ranks = [rank(pair, _NEVER) for pair in pairwise(symbols)]
        while ranks and (lowest := min(ranks)) != _NEVER:
            place = ranks.index(lowest)                       # the leftmost
            made = symbols[place] = self.made[lowest]
            del symbols[place + 1], ranks[place]
            if place:
                ranks[place - 1] = rank((symbols[place - 1], made), _NEVER)
            if place < len(ranks):
                ranks[place] = rank((made, symbols[place + 1]), _NEVER)
        return symbols

    def by_heap(self, word: bytes) -> list[int]:
        """The same with a heap of (rank, place), for words of any length."""
        rank, symbols = self.rank, self._symbols(word)
        following = [*range(1, len(symbols)), -1]
        previous = list(range(-1, len(symbols) - 1))
        heap = [(rank[pair], place) for place, pair in enumerate(pairwise(symbols)) if pair in rank]
        heapify(heap)
        while heap:
            lowest, place = heappop(heap)
            after = following[place]
            if symbols[place] < 0 or after < 0 or rank.get((symbols[place], symbols[after])) != lowest:
                continue                                      # one of them has been merged since
            symbols[place], symbols[after] = self.made[lowest], -1
            following[place] = following[after]
            if following[place] >= 0:
                previous[following[place]] = place
            for left, right in ((previous[place], place), (place, following[place])):
                if left >= 0 and right >= 0 and (symbols[left], symbols[right]) in rank:
                    heappush(heap, (rank[symbols[left], symbols[right]], left))
        return [symbol for symbol in symbols if symbol >= 0]

    # ---------------------------------------------------------------- pieces that are the result of merging their bytes

    def _whole_pieces(self, merges: Sequence[tuple[int, int, int]]) -> dict[bytes, int]:
        """Bytes -> piece, of those for which this is known; none if the list of merges is not regular."""
        made = {piece: -1 for piece in self.single if piece is not None}              # piece -> the rank of its merge
        halves: dict[int, tuple[int, int]] = {}
        whole = set(made)
        if len(made) < 256:
            return {}
        for rank, (left, right, piece) in enumerate(merges):
            if piece in made or left not in made or right not in made:
                return {}
            made[piece], halves[piece] = rank, (left, right)
            if left in whole and right in whole and self._stays_apart(left, right, rank, made, halves):
                whole.add(piece)
        return {self.spelled[piece]: piece for piece in whole}

    def _stays_apart(self, left: int, right: int, limit: int, made: dict[int, int],
                     halves: dict[int, tuple[int, int]]) -> bool:
        """Does no merge of a rank below `limit`, or below what is taken apart, join them at their border?"""
        rank = self.rank.get
        while True:
            if rank((left, right), limit) < limit:
                return False
            if made[left] > made[right]:
                limit, left = made[left], halves[left][1]
            elif made[right] >= 0:                            # of equal ranks, the left one was merged first
                limit, right = made[right] + 1, halves[right][0]
            else:
                return True
