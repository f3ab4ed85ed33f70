"""Shuffled batches of masked sequences, padded to the longest of each batch.

The batch of any step can be computed directly: the order within an epoch is a permutation keyed by (seed, epoch), and
a mask is keyed by (seed, epoch, sequence). Mode, length and batch size may change over a run (schedule.py), and a
curriculum may begin with easy sequences (curricula/curriculum.py).
"""

from collections.abc import Iterator
from copy import copy
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ..core.registry import find, words
from ..errors import ConfigError, CorpusError
from .corpora.corpus import Corpus
from .curricula.curriculum import Curriculum, Order, once
from .masking import BoolArray, IntArray, Masking
from .permutation import Permutation
from .schedule import Schedule, Step, share_of
from .sequences.sequences import PaddedSequences, Sequences

BUCKET = 32           # batches whose sequences are sorted by length and cut together
_SAMPLE = 16_384      # sequences whose mean length is taken for that of all
_STAGES = 4           # modes and lengths that are kept ready


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
        self._own = None if isinstance(mode, str) else mode       # a kind that is no word
        self._modes: Schedule[str] = Schedule.parse(mode if isinstance(mode, str) else mode.__name__, str, "mode")
        self._lengths = _whole_numbers(max_seq_length, "max_seq_length")
        self._sizes = _whole_numbers(batch_size, "batch_size")
        for word in self._modes.values:
            self._kind(word)
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
        return self._kind(mode)(corpus, self.split, T)

    def _kind(self, mode: str) -> type[Sequences]:
        found: type[Sequences] = find("sequences", mode).named if self._own is None else self._own
        return found

    def _bucketed(self, mean_length: float) -> int:
        """How many sequences with this mean length have the tokens of the largest batch."""
        return max(1, round(self._largest * self.sequences.T / mean_length))

    def stage(self, step: int) -> Self:
        """The batches with the mode and the length of this step."""
        mode, T = self._modes(step), self._lengths(step)
        if type(self.sequences) is self._kind(mode) and self.sequences.T == T:
            return self
        if (mode, T) not in self._stages:
            made = copy(self)
            made._window = None
            made._begin(self.sequences.corpus, mode, T)
            self._stages[mode, T] = made
            while len(self._stages) > _STAGES:
                self._stages.pop(next(iter(self._stages)))
        return self._stages[mode, T]

    @property
    def kind(self) -> str:
        """The word for its sequences, or the name of their class."""
        return next((word for word in words("sequences") if find("sequences", word).named is type(self.sequences)),
                    type(self.sequences).__name__)

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
