"""Sequences of a corpus, and batches of them in shuffled order.

A sequence is [CLS] tokens [SEP], at most T long, padded to T. Its tokens are
  packed:     a window of a document's running text, so that sequences are full but for each document's last
  sentences:  one sentence
  pairs:      two sentences with token types, the second one the next in the text or, half of the time, another

Batch number `step` can be made directly, without those before it: the order within an epoch is a permutation
keyed by (seed, epoch), and a mask by (seed, epoch, sequence).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import CorpusError
from ..randomness import generator
from .corpus import Corpus
from .masking import Masking
from .permutation import Permutation
from .tokenizer import cut_longer
from .vocabulary import Vocabulary

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
BUCKET = 32           # batches that are sorted by length together


class Sequences:
    """The sequences of one split, by number; `lengths` counts their tokens with [CLS] and [SEP]."""

    def __init__(self, corpus: Corpus, split: str, T: int):
        if T < 3:
            raise CorpusError(f"Sequences need room for [CLS], a token and [SEP]; max_seq_length is {T}.")
        self.corpus, self.T = corpus, T
        self.documents = corpus.split(split)
        if not len(self.documents):
            raise CorpusError(f"{corpus.directory} has no documents in its split {split!r}.")
        self.vocabulary: Vocabulary = corpus.tokenizer.vocabulary

    def __len__(self) -> int:
        return len(self.starts)

    starts: IntArray          # of each sequence in the corpus' tokens
    ends: IntArray

    @property
    def lengths(self) -> IntArray:
        return self.ends - self.starts + 2

    def fill(self, numbers: IntArray, epoch: int, seed: int) -> "Rows":
        """The sequences of these numbers, padded to T."""
        ids = np.full((len(numbers), self.T), self.vocabulary.pad, np.int64)
        for row, (start, end) in enumerate(zip(self.starts[numbers].tolist(), self.ends[numbers].tolist(),
                                               strict=True)):
            ids[row, 0] = self.vocabulary.cls
            ids[row, 1 : 1 + end - start] = self.corpus.tokens[start:end]
            ids[row, 1 + end - start] = self.vocabulary.sep
        return Rows(ids, np.arange(self.T) < self.lengths[numbers][:, None], None, None)


class Rows(NamedTuple):
    ids: IntArray
    attention_mask: BoolArray
    token_types: IntArray | None
    is_next: BoolArray | None         # of pairs


class PackedSequences(Sequences):
    """Windows of T - 2 tokens over each document's running text."""

    def __init__(self, corpus: Corpus, split: str, T: int):
        super().__init__(corpus, split, T)
        sentences = np.asarray(corpus.sentences, np.int64)
        firsts = np.asarray(corpus.documents, np.int64)
        begin, end = sentences[firsts[self.documents]], sentences[firsts[self.documents + 1]]
        windows = -(-(end - begin) // (T - 2))
        owner = np.repeat(np.arange(len(self.documents)), windows)
        place = np.arange(len(owner)) - np.repeat(np.cumsum(windows) - windows, windows)
        self.starts = begin[owner] + place * (T - 2)
        self.ends = np.minimum(self.starts + T - 2, end[owner])


class SentenceSequences(Sequences):
    """One sentence each, cut to T - 2 tokens."""

    def __init__(self, corpus: Corpus, split: str, T: int):
        super().__init__(corpus, split, T)
        firsts = np.asarray(corpus.documents, np.int64)
        counts = firsts[self.documents + 1] - firsts[self.documents]
        numbers = np.repeat(firsts[self.documents] - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
        borders = np.asarray(corpus.sentences, np.int64)
        self.numbers = numbers
        self.starts = borders[numbers]
        self.ends = np.minimum(borders[numbers + 1], self.starts + T - 2)


class PairSequences(SentenceSequences):
    """[CLS] sentence [SEP] another [SEP]: the next one of the document, or half of the time any other."""

    def __init__(self, corpus: Corpus, split: str, T: int):
        if T < 5:
            raise CorpusError(f"Pairs need room for [CLS], two tokens and two [SEP]; max_seq_length is {T}.")
        super().__init__(corpus, split, T)
        last = np.zeros(corpus.manifest.sentences, bool)
        last[np.asarray(corpus.documents, np.int64)[1:] - 1] = True
        self.firsts = np.flatnonzero(~last[self.numbers])             # those that have a next one
        if not len(self.firsts):
            raise CorpusError(f"{corpus.directory} has no document of two sentences, so there are no pairs.")

    def __len__(self) -> int:
        return len(self.firsts)

    @property
    def lengths(self) -> IntArray:
        sizes = self.ends - self.starts
        both: IntArray = np.minimum(sizes[self.firsts] + sizes[self.firsts + 1] + 3, self.T)
        return both

    def fill(self, numbers: IntArray, epoch: int, seed: int) -> Rows:
        ids = np.full((len(numbers), self.T), self.vocabulary.pad, np.int64)
        types, mask = np.zeros_like(ids), np.zeros(ids.shape, bool)
        is_next = np.empty(len(numbers), bool)
        for row, number in enumerate(numbers.tolist()):
            first = int(self.firsts[number])
            rng = generator(seed, "pair", epoch, number)
            is_next[row] = rng.random() < 0.5
            second = first + 1 if is_next[row] else int(rng.integers(len(self.starts)))
            a, b = (self.corpus.tokens[self.starts[i] : self.ends[i]] for i in (first, second))
            a, b = cut_longer(a, b, self.T - 3)
            ids[row, : len(a) + len(b) + 3] = [self.vocabulary.cls, *a, self.vocabulary.sep, *b, self.vocabulary.sep]
            types[row, len(a) + 2 : len(a) + len(b) + 3] = 1
            mask[row, : len(a) + len(b) + 3] = True
        return Rows(ids, mask, types, is_next)


MODES: dict[str, type[Sequences]] = {"packed": PackedSequences, "sentences": SentenceSequences,
                                     "pairs": PairSequences}


class MLMBatch(NamedTuple):
    """A training batch; everything is (B, T)."""

    input_ids: IntArray
    target_ids: IntArray
    mask_positions: BoolArray
    attention_mask: BoolArray
    token_types: IntArray | None = None
    is_next: BoolArray | None = None      # (B,)


class Batches:
    """All batches of a split, epoch after epoch: `batches[step]` is the same whenever it is asked for."""

    def __init__(self, corpus: Corpus, split: str = "train", *, max_seq_length: int = 64, batch_size: int = 32,
                 mode: str = "packed", masking: Masking | None = None, bucket: bool = False, seed: int = 0):
        if mode not in MODES:
            raise CorpusError(f"There is no mode {mode!r} of making sequences; choose one of {', '.join(MODES)}.")
        if batch_size < 1:
            raise CorpusError(f"batch_size must be at least 1, not {batch_size}.")
        self.sequences = MODES[mode](corpus, split, max_seq_length)
        self.batch_size, self.bucket, self.seed = batch_size, bucket, seed
        self.masking = Masking() if masking is None else masking

    def __len__(self) -> int:
        """Batches in an epoch; the last one may be smaller."""
        return -(-len(self.sequences) // self.batch_size)

    def __iter__(self) -> Iterator[MLMBatch]:
        """The batches of the first epoch."""
        return (self[step] for step in range(len(self)))

    def numbers(self, step: int) -> tuple[int, IntArray]:
        """The epoch of a step, and the numbers of its sequences."""
        epoch, place = divmod(step, len(self))
        order = Permutation(len(self.sequences), self.seed, "epoch", epoch)
        if not self.bucket:
            first = place * self.batch_size
            return epoch, order(np.arange(first, min(first + self.batch_size, len(order))))
        # of BUCKET batches at a time, sequences of similar length go together, in batches of random order
        window, place = divmod(place, BUCKET)
        first = window * BUCKET * self.batch_size
        members = order(np.arange(first, min(first + BUCKET * self.batch_size, len(order))))
        members = members[np.argsort(self.sequences.lengths[members], kind="stable")]
        parts = [members[i : i + self.batch_size] for i in range(0, len(members), self.batch_size)]
        return epoch, parts[int(Permutation(len(parts), self.seed, "bucket", epoch, window)([place])[0])]

    def __getitem__(self, step: int) -> MLMBatch:
        if step < 0:
            raise IndexError("steps count from 0")
        epoch, numbers = self.numbers(step)
        rows = self.sequences.fill(numbers, epoch, self.seed)
        width = int(rows.attention_mask.sum(axis=1).max())            # no more padding than the longest needs
        ids = rows.ids[:, :width]
        masked, positions = self.masking(ids, self.sequences.vocabulary, seed=self.seed, epoch=epoch,
                                         sequences=numbers, step=step)
        types = None if rows.token_types is None else rows.token_types[:, :width]
        return MLMBatch(masked, ids, positions, rows.attention_mask[:, :width], types, rows.is_next)
