"""The sequences of a corpus: [CLS] tokens [SEP], or as the tokenizer's template says, at most T tokens.

    packed:     a window of a document's running text; only the last window of a document may be short
    sentences:  one sentence
    pairs:      two sentences with token types, one after the other in the text; pairs.py has other pairs

These are words of the slot `sequences`. Sequences are numbered, and found by their number in a time that does not
depend on the size of the corpus.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...core.registry import register
from ...errors import CorpusError
from ..corpora.corpus import Corpus
from ..masking import BoolArray, IntArray
from ..tokenizer import truncate_longest_first
from ..vocabulary import Vocabulary


class PaddedSequences(NamedTuple):
    """Sequences padded to the longest; arrays are (B, T) unless noted."""

    ids: IntArray
    attention_mask: BoolArray
    token_types: IntArray | None = None
    relation: IntArray | None = None      # (B,), of pairs that are not all alike: 0 if they are as in the text
    taken: BoolArray | None = None        # what an objective has changed already, and another may not choose


class Sequences(ABC):
    """The numbered sequences of one split. Memory grows with the number of documents, not of sequences."""

    def __init__(self, corpus: Corpus, split: str, T: int):
        self.corpus, self.T, self.template = corpus, T, corpus.tokenizer.template
        self.room = T - self.template.added()         # for tokens of the text
        if self.room < 1:
            raise CorpusError(f"max_seq_length must be at least {T - self.room + 1}, room for a token and the special "
                              f"tokens around it, such as [CLS], not {T}.")
        self.documents = corpus.split(split)
        if not len(self.documents):
            raise CorpusError(f"The split {split!r} of {corpus.directory} has no documents.")
        self.vocabulary: Vocabulary = corpus.tokenizer.vocabulary
        self._ends = np.cumsum(self.count())      # number of the sequence after each document's last

    @abstractmethod
    def count(self) -> IntArray:
        """The number of sequences in each document of the split."""

    def __len__(self) -> int:
        return int(self._ends[-1])

    def locate(self, numbers: IntArray) -> tuple[IntArray, IntArray]:
        """For each sequence its document, and its index among the sequences of that document."""
        owner = np.searchsorted(self._ends, numbers, "right")
        before = np.where(owner > 0, self._ends[owner - 1], 0)
        return self.documents[owner], numbers - before

    @abstractmethod
    def spans(self, numbers: IntArray) -> tuple[IntArray, IntArray]:
        """The start and end of each sequence in the corpus' tokens."""

    def stretches(self, numbers: IntArray) -> list[tuple[IntArray, IntArray]]:
        """The starts and ends of all stretches of text that make up the sequences."""
        return [self.spans(numbers)]

    def lengths(self, numbers: IntArray) -> IntArray:
        """The length of each sequence, including [CLS] and [SEP]."""
        starts, ends = self.spans(numbers)
        return ends - starts + self.template.added()

    def fill(self, numbers: IntArray, epoch: int, seed: int) -> PaddedSequences:
        """The sequences with these numbers, padded."""
        starts, ends = self.spans(numbers)
        before, after = self.template.before, self.template.after
        lengths = ends - starts + len(before) + len(after)
        ids = np.full((len(numbers), int(lengths.max())), self.vocabulary.pad, np.int64)
        column = np.arange(ids.shape[1])
        within = (column >= len(before)) & (column < lengths[:, None] - len(after))
        ids[within] = self.corpus.tokens[(starts[:, None] + column - len(before))[within]]
        if ids.max() >= len(self.vocabulary):
            raise self._damaged()
        ids[:, : len(before)] = before
        for place, token in enumerate(after, -len(after)):
            ids[np.arange(len(ids)), lengths + place] = token
        return PaddedSequences(ids, column < lengths[:, None])

    def _checked(self, starts: npt.NDArray[Any], ends: npt.NDArray[Any]) -> tuple[IntArray, IntArray]:
        """Positions in the tokens, read from an index that may be damaged."""
        if (starts > ends).any() or (ends > len(self.corpus.tokens)).any():
            raise self._damaged()
        return starts.astype(np.int64), ends.astype(np.int64)

    def _damaged(self) -> CorpusError:
        return CorpusError(f"{self.corpus.directory} is damaged; prepare the corpus again.")


@register("sequences", "packed")
class PackedSequences(Sequences):
    """Consecutive windows of each document, as long as there is room for."""

    def _bounds(self, documents: IntArray) -> tuple[IntArray, IntArray]:
        firsts, sentences = self.corpus.documents, self.corpus.sentences
        return self._checked(sentences[firsts[documents]], sentences[firsts[documents + 1]])

    def count(self) -> IntArray:
        begin, end = self._bounds(self.documents)
        return -(-(end - begin) // self.room)

    def spans(self, numbers: IntArray) -> tuple[IntArray, IntArray]:
        documents, place = self.locate(numbers)
        begin, end = self._bounds(documents)
        starts = begin + place * self.room
        return starts, np.minimum(starts + self.room, end)


@register("sequences", "sentences")
class SentenceSequences(Sequences):
    """Single sentences, truncated to what there is room for."""

    def count(self) -> IntArray:
        firsts = self.corpus.documents
        counts: IntArray = (firsts[self.documents + 1] - firsts[self.documents]).astype(np.int64)
        return counts

    def spans(self, numbers: IntArray) -> tuple[IntArray, IntArray]:
        documents, place = self.locate(numbers)
        return self._sentence(self.corpus.documents[documents].astype(np.int64) + place)

    def _sentence(self, numbers: IntArray) -> tuple[IntArray, IntArray]:
        """Start and end of sentences, by their numbers in the whole corpus."""
        starts, ends = self._checked(self.corpus.sentences[numbers], self.corpus.sentences[numbers + 1])
        return starts, np.minimum(ends, starts + self.room)


@register("sequences", "pairs")
class PairSequences(SentenceSequences):
    """[CLS] sentence [SEP] sentence [SEP]: two sentences of a document, one after the other."""

    def __init__(self, corpus: Corpus, split: str, T: int):
        least = corpus.tokenizer.template.added(pair=True) + 2
        if least > T:
            raise CorpusError(f"max_seq_length must be at least {least} for pairs, room for two tokens and the special "
                              f"tokens around them, such as [CLS], not {T}.")
        super().__init__(corpus, split, T)
        if not len(self):
            raise CorpusError(f"There are no pairs in the split {split!r} of {corpus.directory}: no document has two "
                              "sentences.")

    def count(self) -> IntArray:
        return super().count() - 1            # the last sentence of a document has no successor

    def _first(self, numbers: IntArray) -> IntArray:
        """The first sentence of each pair, by its number in the whole corpus."""
        documents, place = self.locate(numbers)
        firsts: IntArray = self.corpus.documents[documents].astype(np.int64) + place
        return firsts

    def stretches(self, numbers: IntArray) -> list[tuple[IntArray, IntArray]]:
        """Both sentences as they are in the text, which may not be those drawn: an estimate to sort by."""
        first = self._first(numbers)
        return [self._sentence(first), self._sentence(first + 1)]

    def lengths(self, numbers: IntArray) -> IntArray:
        """Of the sentences as they are in the text."""
        (a, a_end), (b, b_end) = self.stretches(numbers)
        lengths: IntArray = np.minimum(a_end - a + b_end - b + self.template.added(pair=True), self.T)
        return lengths

    def pairs(self, numbers: IntArray, epoch: int, seed: int) -> tuple[IntArray, IntArray, IntArray | None]:
        """The two sentences of each pair, by their numbers in the whole corpus, and how they relate, if they differ."""
        first = self._first(numbers)
        return first, first + 1, None

    def fill(self, numbers: IntArray, epoch: int, seed: int) -> PaddedSequences:
        first, second, relation = self.pairs(numbers, epoch, seed)
        added, tokens = self.template.added(pair=True), self.corpus.tokens
        spans = np.stack([*self._sentence(first), *self._sentence(second)], axis=1).tolist()
        rows = [truncate_longest_first(tokens[a:a_end], tokens[b:b_end], self.T - added)
                for a, a_end, b, b_end in spans]
        width = max(len(a) + len(b) for a, b in rows) + added
        ids = np.full((len(rows), width), self.vocabulary.pad, np.int64)
        types, mask = np.zeros_like(ids), np.zeros(ids.shape, bool)
        for row, (a, b) in enumerate(rows):
            whole, its_types = self.template.apply(a.tolist(), b.tolist())
            ids[row, : len(whole)], types[row, : len(whole)] = whole, its_types
            mask[row, : len(whole)] = True
        if ids.max() >= len(self.vocabulary):
            raise self._damaged()
        return PaddedSequences(ids, mask, types, relation)
