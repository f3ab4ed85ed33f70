"""Merging the most frequent pair of neighbours, over and over: how a vocabulary is learned from words and their counts.

All words are in one array, doubly linked. The places of each pair are listed when the pair first appears and visited
when it is merged, so a merge costs time in proportion to what it changes, not a pass over the text. Of equally frequent
pairs, the one of older pieces is merged first.
"""

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

import numpy as np
import numpy.typing as npt


class PairMerger:
    """All words as linked symbols, the places of each pair, and a heap of pairs by frequency.

    `continuation` stands before the pieces inside a word.
    """

    def __init__(self, words: list[tuple[str, int]], pieces: list[str], continuation: str = ""):
        self.pieces, self.continuation = pieces, continuation
        self.merges: list[tuple[str, str]] = []       # in order
        self.ids = {piece: i for i, piece in enumerate(pieces)}
        lengths = np.array([len(word) for word, _ in words])
        ends = np.cumsum(lengths)
        text = "".join(word for word, _ in words)
        codes, inverse = np.unique(np.frombuffer(text.encode("utf-32-le"), "<u4"), return_inverse=True)
        first = np.array([self.ids[chr(code)] for code in codes])
        later = np.array([self.ids.get(continuation + chr(code), -1) for code in codes])
        self.symbol = later[inverse].astype(np.int32)
        starts = ends - lengths
        self.symbol[starts] = first[inverse[starts]]
        self.next = np.arange(1, len(text) + 1, dtype=np.int32)
        self.next[ends - 1] = -1
        self.previous = np.arange(-1, len(text) - 1, dtype=np.int32)
        self.previous[starts] = -1
        self.weight = np.repeat(np.array([count for _, count in words], np.int64), lengths)
        self.counts: dict[int, int] = {}
        self.places: dict[int, list[npt.NDArray[np.int32]]] = {}
        self.heap: list[tuple[int, int]] = []
        self._add(np.flatnonzero(self.next >= 0).astype(np.int32))
        heapify(self.heap)

    def _keys(self, places: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        """The pairs that start at these places, as integers; older symbols give smaller ones."""
        return (self.symbol[places].astype(np.int64) << 32) | self.symbol[self.next[places]]

    def _grouped(self, places: npt.NDArray[np.int32]) -> Iterable[tuple[int, npt.NDArray[np.int32], int]]:
        """(pair, its places, its weighted count) for each distinct pair at these places."""
        keys = self._keys(places)
        order = np.argsort(keys, kind="stable")
        keys, places = keys[order], places[order]
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        counts = np.add.reduceat(self.weight[places], starts)
        stops = [*starts[1:].tolist(), len(keys)]
        for key, start, stop, count in zip(keys[starts].tolist(), starts.tolist(), stops, counts.tolist(),
                                           strict=True):
            yield key, places[start:stop], count

    def _add(self, places: npt.NDArray[np.int32]) -> None:
        if len(places):
            for key, where, count in self._grouped(places):
                self.counts[key] = self.counts.get(key, 0) + count
                self.places.setdefault(key, []).append(where)
                heappush(self.heap, (-self.counts[key], key))

    def _remove(self, places: npt.NDArray[np.int32]) -> None:
        if len(places):
            for key, _, count in self._grouped(places):
                self.counts[key] -= count      # the heap is corrected when the pair is popped

    def merge_most_frequent(self, min_frequency: int) -> bool:
        """Merge the most frequent pair everywhere; False if no pair is frequent enough."""
        while self.heap:
            count, key = heappop(self.heap)
            actual = self.counts.get(key, 0)
            if actual != -count:
                if 0 < actual < -count:
                    heappush(self.heap, (-actual, key))
                continue
            if actual < max(min_frequency, 1):
                return False
            self._merge(key)
            return True
        return False

    def _merge(self, key: int) -> None:
        a, b = key >> 32, key & 0xFFFFFFFF
        self.merges.append((self.pieces[a], self.pieces[b]))
        spelled = self.pieces[a] + self.pieces[b].removeprefix(self.continuation)
        merged = self.ids.setdefault(spelled, len(self.pieces))      # two pairs may spell the same piece
        if merged == len(self.pieces):
            self.pieces.append(spelled)
        places = np.concatenate(self.places.pop(key))
        del self.counts[key]
        following = self.next[places]
        present = (self.symbol[places] == a) & (following >= 0) & (self.symbol[following] == b)
        places = places[present]
        if a == b:
            places = _every_second(np.sort(places), self.next)
        following = self.next[places]
        # remove the pairs that overlap a merged one
        before, after = self.previous[places], self.next[following]
        touched = np.unique(np.concatenate([before[before >= 0], following[after >= 0]]))
        self._remove(touched[(self.symbol[touched] != a) | (self.symbol[self.next[touched]] != b)])
        self.symbol[places] = merged
        self.symbol[following] = -1
        self.next[places] = after
        self.previous[after[after >= 0]] = places[after >= 0]
        # add the pairs of the new symbol and its neighbours
        before = self.previous[places]
        self._add(np.unique(np.concatenate([before[before >= 0], places[after >= 0]])))


def _every_second(places: npt.NDArray[np.int32], following: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Where a pair of equal symbols overlaps itself (aaa), keep every second place of a run, from the left."""
    overlaps = np.concatenate([[False], following[places[:-1]] == places[1:]])
    index = np.arange(len(places))
    run_start = np.maximum.accumulate(np.where(overlaps, 0, index))
    kept: npt.NDArray[np.int32] = places[(index - run_start) % 2 == 0]
    return kept
