"""Sequences of a corpus, and shuffled batches of masked sequences.

A sequence is [CLS] tokens [SEP], or as the tokenizer's template says, at most T tokens, padded to the longest sequence
of its batch. The modes are
  packed:     a window of a document's running text; only the last window of a document may be short
  sentences:  one sentence
  pairs:      two sentences with token types, one after the other in the text; sentence_pairs.py has other pairs

The batch of any step can be computed directly: the order within an epoch is a permutation keyed by (seed, epoch), and
a mask is keyed by (seed, epoch, sequence). Mode, length and batch size may change over a run (schedule.py), and a
curriculum may begin with easy sequences (curricula/curriculum.py).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ..errors import ConfigError, CorpusError
from .corpora.corpus import Corpus
from .curricula.curriculum import Curriculum, Order, once
from .masking import BoolArray, IntArray, Masking
from .permutation import Permutation
from .schedule import Schedule, Step, share_of
from .tokenizer import truncate_longest_first
from .vocabulary import Vocabulary

BUCKET = 32           # batches whose sequences are sorted by length and cut together
_SAMPLE = 16_384      # sequences whose mean length is taken for that of all
_STAGES = 4           # modes and lengths that are kept ready


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


MODES: dict[str, type[Sequences]] = {"packed": PackedSequences, "sentences": SentenceSequences,
                                     "pairs": PairSequences}


def _even_cuts(lengths: IntArray, parts: int) -> IntArray:
    """Where to cut a list of sequences into `parts` of about the same number of tokens, none of them empty."""
    ends, inner = np.cumsum(lengths), np.arange(1, parts)
    cuts = np.searchsorted(ends, ends[-1] * inner / parts, "right")
    cuts = np.maximum.accumulate(cuts - inner) + inner                      # each cut is behind the one before it
    found: IntArray = np.clip(cuts, inner, len(lengths) - parts + inner)    # and leaves one for each part
    return found


def _whole_numbers(given: int | str, name: str) -> Schedule[int]:
    """A setting of at least 1, at all times."""
    try:
        schedule: Schedule[int] = Schedule.parse(int(given) if isinstance(given, np.integer) else given, int, name)
    except ConfigError as error:
        raise CorpusError(str(error)) from None
    if min(schedule.values) < 1:
        raise CorpusError(f"{name} must be a whole number of at least 1, not {given}.")
    return schedule


class MLMBatch(NamedTuple):
    """A training batch; arrays are (B, T) unless noted."""

    input_ids: IntArray
    target_ids: IntArray
    mask_positions: BoolArray
    attention_mask: BoolArray
    token_types: IntArray | None = None
    relation: IntArray | None = None      # (B,), of pairs: 0 if they are as in the text
    order: IntArray | None = None         # the rank of each token, where tokens are predicted in an order
    causal: BoolArray | None = None       # (B,), the sequences that are read causally, which come last
    draws: npt.NDArray[np.float64] | None = None      # a number in [0, 1) for each token, where a pass draws something


class MLMBatches:
    """Masked batches of a split, epoch after epoch: `batches[step]` is a pure function of the step.

    A batch has `batch_size` sequences. With `bucket` its sequences are of similar length, so there is little padding,
    and there are as many of them as have about batch_size x max_seq_length tokens: more short ones, fewer long ones.

    `max_seq_length`, `batch_size` and `mode` may be schedules, for which a step must be a `Step` that knows its run.
    Every step has a place for the largest batch in the epoch's order; a smaller batch takes the first of its sequences,
    and leaves the others to another epoch. So which sequences a step may take depends on its number alone.

    With a curriculum an epoch shows easy sequences more than once. Then draws are keyed by the step in place of the
    epoch, and a batch has each of its sequences once.
    """

    def __init__(self, corpus: Corpus, split: str = "train", *, max_seq_length: int | str = 64,
                 batch_size: int | str = 32, mode: str | type[Sequences] = "packed", masking: Masking | None = None,
                 bucket: bool = False, curriculum: Curriculum | None = None, seed: int = 0):
        self.split, self.batch_size, self.bucket, self.seed = split, batch_size, bucket, seed
        self.curriculum = curriculum
        self._kinds = MODES if isinstance(mode, str) else {mode.__name__: mode}
        self._modes: Schedule[str] = Schedule.parse(mode if isinstance(mode, str) else mode.__name__, str, "mode")
        self._lengths = _whole_numbers(max_seq_length, "max_seq_length")
        self._sizes = _whole_numbers(batch_size, "batch_size")
        for word in self._modes.values:
            if word not in self._kinds:
                raise CorpusError(f"There is no sequence mode {word!r}; choose one of {', '.join(MODES)}.")
        self._largest = max(self._sizes.values)
        self._epoch = 0       # of the next iteration
        self.masking = Masking() if masking is None else masking
        self._window: tuple[tuple[int, int, int], list[IntArray]] | None = None       # the one that was cut last
        self._stages: dict[tuple[str, int], Self] = {}
        for shortest in self._shortest(corpus):               # each mode must have room in all its steps
            self._begin(*shortest)
        self._begin(corpus, self._modes.at(0.0), self._lengths.at(0.0))

    def _shortest(self, corpus: Corpus) -> Iterator[tuple[Corpus, str, int]]:
        """Each mode with the shortest length that it has, if one of them changes."""
        if not (self._modes.constant and self._lengths.constant):
            pairs = {(self._modes.at(share), self._lengths.at(share)) for share in np.linspace(0, 1, 1001).tolist()}
            for mode in dict.fromkeys(self._modes.values):
                yield corpus, mode, min(T for word, T in pairs if word == mode)

    def _begin(self, corpus: Corpus, mode: str, T: int) -> None:
        """Read sequences of this mode and length."""
        self.sequences = self._sequences(corpus, mode, T)
        self.order = Order(self.sequences, self.curriculum, self.seed)
        self._rows = self._largest        # sequences of the largest batch
        if self.bucket:
            sample = np.linspace(0, len(self.sequences) - 1, min(len(self.sequences), _SAMPLE)).astype(np.int64)
            self._rows = self._bucketed(float(self.sequences.lengths(sample).mean()))

    def _sequences(self, corpus: Corpus, mode: str, T: int) -> Sequences:
        return self._kinds[mode](corpus, self.split, T)

    def _bucketed(self, mean_length: float) -> int:
        """How many sequences with this mean length have the tokens of the largest batch."""
        return max(1, round(self._largest * self.sequences.T / mean_length))

    def stage(self, step: int) -> Self:
        """The batches with the mode and the length of this step."""
        mode, T = self._modes(step), self._lengths(step)
        if type(self.sequences) is self._kinds[mode] and self.sequences.T == T:
            return self
        if (mode, T) not in self._stages:
            made = copy(self)
            made._window = None
            made._begin(self.sequences.corpus, mode, T)
            self._stages[mode, T] = made
            while len(self._stages) > _STAGES:
                self._stages.pop(next(iter(self._stages)))
        return self._stages[mode, T]

    def __len__(self) -> int:
        """The number of batches in an epoch; the last one may be smaller."""
        return -(-len(self.sequences) // self._rows)

    def __iter__(self) -> Iterator[MLMBatch]:
        """The batches of one epoch. Each new iteration is the next epoch, with another order and other masks."""
        epoch = self._epoch
        self._epoch += 1
        return self.epoch(epoch)

    def epoch(self, number: int) -> Iterator[MLMBatch]:
        """The batches of this epoch."""
        return (self[number * len(self) + step] for step in range(len(self)))

    def numbers(self, step: int) -> tuple[int, IntArray]:
        """The epoch of a step, and the numbers of its sequences among those of its stage."""
        epoch, place = divmod(int(step), len(self))
        if self.curriculum is None:
            return epoch, self._numbers(step, epoch, place)
        return int(step), once(self._numbers(step, epoch, place))

    def _numbers(self, step: int, epoch: int, place: int) -> IntArray:
        size = self._sizes(step)
        if not self.bucket:
            return self.order.draw(epoch, place * self._rows, size, self.pool(step))
        window, place = divmod(place, BUCKET)
        begins = Step(int(step) - place, step.total if isinstance(step, Step) else 0)
        parts = self._cut(epoch, window, self.pool(begins))
        part = parts[int(Permutation(len(parts), self.seed, "bucket", epoch, window)([place])[0])]
        taken = max(1, round(len(part) * size / self._largest))
        return part[np.arange(taken) * len(part) // taken]                    # all of its lengths, evenly

    def pool(self, step: int) -> int:
        """How many sequences are open to a step: all, or by a curriculum the easiest of them."""
        return self.order.pool(share_of(step), self._rows)

    def _cut(self, epoch: int, window: int, pool: int) -> list[IntArray]:
        """The sequences of BUCKET batches, sorted by length and cut anew: its batches, short sequences first."""
        known = self._window
        if known is not None and known[0] == (epoch, window, pool):
            return known[1]
        first = window * BUCKET * self._rows
        count = min(BUCKET * self._rows, len(self.sequences) - first)
        batches, wanted = -(-count // self._rows), count
        if self.curriculum is not None:           # easy sequences may be short; a batch has as many tokens as ever
            wanted = max(batches, count * self._bucketed(self.order.mean_length(pool)) // self._rows)
        members = self.order.draw(epoch, first, count, pool, wanted)
        lengths = self.sequences.lengths(members)
        by_length = np.argsort(lengths, kind="stable")
        parts = np.split(members[by_length], _even_cuts(lengths[by_length], batches))
        self._window = ((epoch, window, pool), parts)
        return parts

    def __getitem__(self, step: int) -> MLMBatch:
        return self.stage(step).batch(*self.rows(step), step)

    def rows(self, step: int) -> tuple[PaddedSequences, int, IntArray]:
        """The sequences of a step, as they are in the text, with their epoch and their numbers."""
        if step < 0:
            raise IndexError("steps count from 0")
        stage = self.stage(step)
        epoch, numbers = stage.numbers(step)
        return stage.sequences.fill(numbers, epoch, self.seed), epoch, numbers

    def batch(self, rows: PaddedSequences, epoch: int, numbers: IntArray, step: int) -> MLMBatch:
        """These sequences with what is to be predicted. Batches for other objectives override this."""
        vocabulary, taken = self.sequences.vocabulary, rows.taken
        ids = rows.ids if taken is None else np.where(taken, vocabulary.mask, rows.ids)      # special: never chosen
        masked, positions = self.masking(ids, vocabulary, seed=self.seed, epoch=epoch, sequences=numbers, step=step)
        return unmarked(rows)._replace(input_ids=masked if taken is None else np.where(taken, rows.ids, masked),
                                       mask_positions=positions)


def unmarked(rows: PaddedSequences) -> MLMBatch:
    """Sequences as a batch in which nothing is to be predicted yet."""
    return MLMBatch(rows.ids, rows.ids, np.zeros_like(rows.attention_mask), rows.attention_mask, rows.token_types,
                    rows.relation)
