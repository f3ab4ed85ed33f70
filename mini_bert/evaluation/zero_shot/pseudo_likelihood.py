"""Pseudo-log-likelihoods of many short texts, and the logits of a model at masked positions in general.

    token:  PLL(text) = sum over its pieces t of log p(t | the text with t masked)
    word:   the same, with the later pieces of t's word masked too, as they would reveal t (Kauf & Ivanova, 2023)

There is one row per masked piece. The rows of all texts are batched by length, so that there is no padding, and the
model computes only the masked positions. Equal rows are computed once: the two sentences of a minimal pair share the
row in which their difference is masked, and both variants share the rows of words of one piece. A model that predicts
in any order is not asked by [MASK]: the hidden pieces come last in the order, so that nothing reads them.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ...core.arrays import Array, BoolArray, IntArray
from ...core.model import MiniBERT
from ...errors import ConfigError, InputError
from ...inference.inputs import require_vocabulary
from ...text.template import Template
from ...text.tokenizer import Tokenizer
from ...text.vocabulary import Vocabulary
from ...workers import Workers, workers
from ..probabilities import target_losses

VARIANTS = ("token", "word")
_TOKENS = 2048                # per batch: more do not fit into the cache of a core
_ROUND = 64                   # batches between two calls of progress, where an interrupt takes effect

ProgressCallback = Callable[[int, int], None]         # done, total
FloatArray = npt.NDArray[np.float64]
Result = TypeVar("Result")


# -------------------------------------------------------------------- logits at masks

def window(ids: Sequence[int], place: int, room: int) -> tuple[list[int], int]:
    """At most `room` of the ids, with `place` as close to the middle as possible; and its index in them."""
    start = min(max(place - room // 2, 0), max(len(ids) - room, 0))
    return list(ids[start : start + room]), place - start


def single_piece(tokenizer: Tokenizer, word: str) -> int | None:
    """The id of a word that is a single piece of the vocabulary, else None; only such a word can fill one mask."""
    ids = tokenizer.word_ids(word)
    return ids[0] if len(ids) == 1 and tokenizer.vocabulary.ordinary[ids[0]] else None


def read_masks(model: MiniBERT, rows: IntArray, places: IntArray, read: Callable[[Array, slice], None], team: Workers,
               progress: Callable[[slice], None] | None = None, hidden: BoolArray | None = None) -> None:
    """Call `read(logits (b, V), slice of rows)` with the logits at one place per row, for batches of rows (R, T).

    A model that predicts in any order is asked for the hidden tokens (R, T) last, so that nothing reads them; by
    default those at the places.
    """
    model.require_words()
    size = max(1, _TOKENS // rows.shape[1])
    batches = [slice(start, min(start + size, len(rows))) for start in range(0, len(rows), size)]

    def one(batch: slice) -> None:
        positions = np.zeros(rows[batch].shape, bool)
        positions[np.arange(len(positions)), places[batch]] = True
        last = (positions if hidden is None else hidden[batch]).astype(np.int64) if model.modules.stack.orders else None
        logits, _ = model.forward(rows[batch], positions=positions, order=last, forward_only=True)
        read(logits, batch)

    for start in range(0, len(batches), _ROUND):
        some = batches[start : start + _ROUND]
        team.map(one, some)
        if progress is not None:
            progress(slice(some[0].start, some[-1].stop))


def read_sequences(model: MiniBERT, sequences: Sequence[Sequence[int]], places: Sequence[int],
                   read: Callable[[Array, IntArray], None], team: Workers,
                   progress: ProgressCallback | None = None) -> None:
    """The same for sequences of different lengths: `read(logits, indices of the sequences)`."""
    where, done = np.array(places, np.int64), 0
    for numbers in same_length_groups(sequences):
        rows = np.array([sequences[i] for i in numbers.tolist()], np.int64)
        read_masks(model, rows, where[numbers], _by_number(read, numbers), team)
        done += len(numbers)
        if progress is not None:
            progress(done, len(sequences))


def _by_number(read: Callable[[Array, IntArray], None], numbers: IntArray) -> Callable[[Array, slice], None]:
    return lambda logits, some: read(logits, numbers[some])


def same_length_groups(sequences: Sequence[Sequence[int]]) -> Iterator[npt.NDArray[np.int64]]:
    """The indices of the sequences of each length, the longest first."""
    lengths = np.array([len(sequence) for sequence in sequences], np.int64)
    return (np.flatnonzero(lengths == length) for length in np.unique(lengths)[::-1])


def computed_by_length(sequences: Sequence[Sequence[int]], compute: Callable[[IntArray], Result], tokens: int,
                       threads: int, progress: ProgressCallback | None = None) -> Iterator[tuple[IntArray, Result]]:
    """What `compute` gives for the indices of some sequences of one length, of at most `tokens` tokens together; with
    those indices, until all sequences have been."""
    done = 0
    with workers(threads) as team:
        for numbers in same_length_groups(sequences):
            size = max(1, tokens // max(1, len(sequences[numbers[0]])))
            batches = [numbers[i : i + size] for i in range(0, len(numbers), size)]
            yield from zip(batches, team.map(compute, batches), strict=True)
            done += len(numbers)
            if progress is not None:
                progress(done, len(sequences))


def offset_progress(progress: ProgressCallback | None, before: int, total: int) -> Callable[[int], None] | None:
    """A callback for one part of the work that starts when `before` are done, which reports the total progress."""
    return None if progress is None else lambda done: progress(before + done, total)


# -------------------------------------------------------------------- pseudo-log-likelihoods

class Likelihoods(NamedTuple):
    """The pseudo-log-likelihoods of the texts by variant, and counts."""

    totals: dict[str, FloatArray]
    pieces: npt.NDArray[np.int64]         # number of pieces of each text
    windowed: int                         # texts longer than the model's maximum: each mask saw the window around it
    unknown: int                          # texts with [UNK]
    rows: int                             # sequences computed by the model


class _MaskedPieces(NamedTuple):
    """Sequences (N, T) of the same length, and the pieces to mask: sequence, place in it, and text of each."""

    ids: IntArray
    sequence: IntArray
    place: IntArray
    text: IntArray


def pseudo_log_likelihoods(model: MiniBERT, tokenizer: Tokenizer, texts: Sequence[str], *,
                           variants: Sequence[str] = ("token",), threads: int = 0,
                           progress: ProgressCallback | None = None) -> Likelihoods:
    """The pseudo-log-likelihood of each text, in each of the variants.

    A text longer than the model's maximum is not cut: each piece is masked in the window around it. A text without
    pieces gets the log-likelihood 0; `pieces` shows which those are.
    """
    if isinstance(texts, str):
        raise InputError("pseudo_log_likelihoods takes a list of texts; put a single text into a list.")
    for variant in variants:
        if variant not in VARIANTS:
            raise ConfigError(f"There is no variant {variant!r}; choose some of {', '.join(VARIANTS)}.")
    require_vocabulary(model, tokenizer)
    numbers: dict[str, int] = {}
    which = np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.int64)
    ids, counts = tokenizer.ids_array(numbers)
    lengths, vocabulary = counts.astype(np.int64), tokenizer.vocabulary
    room = model.config.max_seq_length - tokenizer.template.added()
    unknown = np.unique(np.repeat(np.arange(len(lengths)), lengths)[ids == vocabulary.roles.get("unk", -1)])
    sums = {variant: np.zeros(len(lengths)) for variant in variants}
    total, done, rows = int(lengths.sum()) * len(sums), 0, 0
    with workers(threads) as team:
        for asked in _groups(ids.astype(np.int64), lengths, tokenizer.template, room):
            logs, computed = _ask(model, vocabulary, asked, list(sums), team, offset_progress(progress, done, total))
            for variant, found in zip(sums, logs, strict=True):
                sums[variant] += np.bincount(asked.text, found, len(lengths))
            done, rows = done + len(asked.text) * len(sums), rows + computed
    return Likelihoods({variant: values[which] for variant, values in sums.items()}, lengths[which],
                       int((lengths[which] > room).sum()), int(np.isin(which, unknown).sum()), rows)


def _groups(ids: IntArray, lengths: IntArray, template: Template, room: int) -> Iterator[_MaskedPieces]:
    """The pieces to mask, grouped by the length of their sequences, the longest first."""
    starts, before = np.cumsum(lengths) - lengths, len(template.before)
    for text in np.flatnonzero(lengths > room).tolist():
        own = ids[starts[text] : starts[text] + lengths[text]].tolist()
        windows = [window(own, place, room) for place in range(len(own))]
        yield _MaskedPieces(_framed(np.array([part for part, _ in windows]), template), np.arange(len(own)),
                            np.array([place + before for _, place in windows]), np.full(len(own), text))
    for length in np.unique(lengths[(lengths > 0) & (lengths <= room)])[::-1].tolist():
        members = np.flatnonzero(lengths == length)
        yield _MaskedPieces(_framed(ids[starts[members][:, None] + np.arange(length)], template),
                            np.repeat(np.arange(len(members)), length),
                            np.tile(np.arange(before, before + length), len(members)), np.repeat(members, length))


def _framed(ids: IntArray, template: Template) -> IntArray:
    """Put the special tokens, such as [CLS] and [SEP], before and after each row."""
    around = [np.tile(np.array(some, np.int64), (len(ids), 1)) for some in (template.before, template.after)]
    return np.concatenate([around[0], ids, around[1]], axis=1)


def _ask(model: MiniBERT, vocabulary: Vocabulary, asked: _MaskedPieces, variants: list[str], team: Workers,
         progress: Callable[[int], None] | None) -> tuple[list[FloatArray], int]:
    """The log-probability of every masked piece, by variant; and how many rows were computed."""
    rows = np.concatenate([_masked(asked, vocabulary, variant) for variant in variants])
    places, targets = np.tile(asked.place, len(variants)), asked.ids[asked.sequence, asked.place]
    targets = np.tile(targets, len(variants))
    row_of = _numbered(np.concatenate([rows, places[:, None]], axis=1))
    first = np.unique(row_of, return_index=True)[1]               # one of each group of equal rows
    order = np.argsort(row_of, kind="stable")
    in_order, logs = row_of[order], np.empty(len(row_of))

    def read(logits: Array, some: slice) -> None:
        low, high = np.searchsorted(in_order, [some.start, some.stop])
        here, row = order[low:high], in_order[low:high] - some.start
        logs[here] = -target_losses(logits[row], targets[here])

    def tell(some: slice) -> None:
        if progress is not None:
            progress(int(np.searchsorted(in_order, some.stop)))

    read_masks(model, rows[first], places[first], read, team, tell, hidden=rows[first] == vocabulary.mask)
    return np.split(logs, len(variants)), len(first)


def _masked(asked: _MaskedPieces, vocabulary: Vocabulary, variant: str) -> IntArray:
    """A row for each piece, with the piece masked, and for the variant `word` the rest of its word as well."""
    rows = asked.ids[asked.sequence]                              # (R, T)
    columns, place = np.arange(rows.shape[1]), asked.place[:, None]
    if variant == "token":
        hidden = columns == place
    else:
        words = np.cumsum(~vocabulary.continues[asked.ids], axis=1)[asked.sequence]       # index of the word
        hidden = (columns >= place) & (words == np.take_along_axis(words, place, axis=1))
    rows[hidden] = vocabulary.mask
    return rows


def _numbered(rows: IntArray) -> IntArray:
    """A number for each row, the same for equal rows, in the order of first occurrence."""
    raw, width = rows.astype(np.uint32).tobytes(), 4 * rows.shape[1]
    known: dict[bytes, int] = {}
    return np.array([known.setdefault(raw[i : i + width], len(known)) for i in range(0, len(raw), width)], np.int64)
