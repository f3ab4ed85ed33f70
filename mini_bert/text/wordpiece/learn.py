"""Learning a vocabulary from text by byte-pair encoding, as the usual WordPiece trainers do.

The words of the text are counted. Each word is a sequence of symbols, initially its characters (with ## in front
inside a word). The most frequent pair of adjacent symbols is merged into a new symbol, which becomes a piece of the
vocabulary; this repeats until the vocabulary is full.

All words are in one array, doubly linked. The places of each pair are listed when the pair first appears and visited
when it is merged, so a merge costs time in proportion to what it changes, not a pass over the text.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from heapq import heapify, heappop, heappush

import numpy as np
import numpy.typing as npt

from ...errors import VocabularyError
from ..vocabulary import CONTINUATION, SPECIAL_TOKENS, Vocabulary
from .normalise import normaliser
from .tokenizer import MAX_WORD_LENGTH

_CHUNKS_IN_MEMORY = 1 << 20
Progress = Callable[[int], None]      # called with the number of pieces so far


def count_words(texts: Iterable[str], lowercase: bool = True, strip_accents: bool | None = None) -> Counter[str]:
    """How often each normalised word occurs."""
    table = normaliser(lowercase, lowercase if strip_accents is None else strip_accents)
    words: Counter[str] = Counter()
    raw: Counter[str] = Counter()     # chunks repeat, so each is normalised once and not at every occurrence

    def flush() -> None:
        for chunk, count in raw.items():
            for word in table.words(chunk):
                words[word] += count
        raw.clear()

    for text in texts:
        chunks = table.chunks(text)
        raw.update(chunk for chunk in chunks if len(chunk) <= MAX_WORD_LENGTH)
        for chunk in chunks:
            if len(chunk) > MAX_WORD_LENGTH:          # text without spaces, which will not repeat
                words.update(word for word in table.words(chunk) if len(word) <= MAX_WORD_LENGTH)
        if len(raw) > _CHUNKS_IN_MEMORY:
            flush()
    flush()
    return words


def learn_vocabulary(words: Mapping[str, int], vocab_size: int, *, min_frequency: int = 2,
                     alphabet_limit: int = 1000, progress: Progress | None = None) -> Vocabulary:
    """A vocabulary of at most `vocab_size` pieces, learned from words and their counts.

    Words with characters outside the `alphabet_limit` most frequent ones are ignored, and become [UNK]. Pairs that
    occur less than `min_frequency` times are not merged. Of equally frequent pairs, the older one is merged first.
    """
    letters: Counter[str] = Counter()
    for word, count in words.items():
        for letter in word:
            letters[letter] += count
    kept = {letter for letter, _ in sorted(letters.items(), key=lambda item: (-item[1], item[0]))[:alphabet_limit]}
    usable = sorted((word, count) for word, count in words.items()
                    if len(word) <= MAX_WORD_LENGTH and kept.issuperset(word))
    if not usable:
        raise VocabularyError("The text has no words to learn a vocabulary from.")
    inside = {letter for word, _ in usable for letter in word[1:]}
    pieces = [*SPECIAL_TOKENS, *sorted(kept), *(CONTINUATION + letter for letter in sorted(inside))]
    if vocab_size < len(pieces):
        raise VocabularyError(f"vocab_size={vocab_size} is too small: the special tokens and the {len(kept)} characters"
                              f" alone need {len(pieces)} pieces; raise it, or lower the alphabet limit.")
    merger = _Merger(usable, pieces)
    if progress is not None:
        progress(len(merger.pieces))
    while len(merger.pieces) < vocab_size and merger.merge_most_frequent(min_frequency):
        if progress is not None:
            progress(len(merger.pieces))
    return Vocabulary(merger.pieces, "The learned vocabulary")


class _Merger:
    """All words as linked symbols, the places of each pair, and a heap of pairs by frequency."""

    def __init__(self, words: list[tuple[str, int]], pieces: list[str]):
        self.pieces = pieces
        self.ids = {piece: i for i, piece in enumerate(pieces)}
        lengths = np.array([len(word) for word, _ in words])
        ends = np.cumsum(lengths)
        text = "".join(word for word, _ in words)
        codes, inverse = np.unique(np.frombuffer(text.encode("utf-32-le"), "<u4"), return_inverse=True)
        first = np.array([self.ids[chr(code)] for code in codes])
        later = np.array([self.ids.get(CONTINUATION + chr(code), -1) for code in codes])
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
        spelled = self.pieces[a] + self.pieces[b].removeprefix(CONTINUATION)
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
