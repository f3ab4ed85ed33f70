"""A vector for each word of annotated sentences, at every layer of a model.

Each word is tokenised separately, so that its pieces are known exactly. A sentence longer than the model's maximum is
read in windows (inference/windows.py). No word is lost.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...core.arrays import Array, IntArray
from ...core.cache import Cache
from ...core.model import MiniBERT
from ...errors import InputError
from ...inference.inputs import require_vocabulary, some_ids
from ...inference.ragged import read
from ...inference.windows import windows
from ...text.tokenizer import Tokenizer
from ...workers import Workers
from ..result import Result

Ints = npt.NDArray[np.int64]
EMBEDDINGS = "embeddings"                 # tokens and positions, before any attention


@dataclass(frozen=True)
class AlignmentReport(Result):
    """Counts of sentences and words, and of those that were windowed, cut or unknown."""

    sentences: int
    words: int
    windowed_sentences: int       # longer than the model's maximum
    cut_words: int                # single words longer than the maximum; only their first pieces are used
    empty_words: int              # words that the tokenizer drops completely; replaced by [UNK]
    unknown_words: int            # words with a piece [UNK]


@dataclass(frozen=True)
class Alignment:
    """Windows of pieces, and for each word, counted through all sentences, the position of its pieces."""

    windows: list[list[int]]      # ids with special tokens
    window: Ints                  # (N,)
    start: Ints                   # (N,) index of the first piece in the window
    pieces: Ints                  # (N,) number of pieces
    offsets: Ints                 # (S + 1,): sentence s has the words offsets[s] : offsets[s + 1]
    report: AlignmentReport


def align_words(tokenizer: Tokenizer, sentences: Iterable[Sequence[str]],
                max_seq_length: int) -> Alignment:
    """Tokenise all words into windows of at most `max_seq_length` ids."""
    room, before = max_seq_length - tokenizer.template.added(), len(tokenizer.template.before)
    if room < 2:
        raise InputError(f"A model of {max_seq_length} tokens has no room for words between special tokens, such as "
                         "[CLS] and [SEP].")
    known = _WordIds(tokenizer, room)
    made: list[list[int]] = []
    window: list[int] = []
    start: list[int] = []
    pieces: list[int] = []
    offsets = [0]
    windowed = 0
    for words in sentences:
        ids = [known[word] for word in words]
        lengths = [len(word) for word in ids]
        found = windows(lengths, room)
        windowed += len(found) > 1
        for first, last, begin, end in found:
            place = before + sum(lengths[first:begin])
            for length in lengths[begin:end]:
                window.append(len(made))
                start.append(place)
                place += length
            made.append(tokenizer.with_special([i for word in ids[first:last] for i in word]))
        pieces += lengths
        offsets.append(len(pieces))
        known.count(words)
    report = AlignmentReport(len(offsets) - 1, len(pieces), windowed, known.cut, known.empty, known.unknown)
    return Alignment(made, np.array(window, np.int64), np.array(start, np.int64), np.array(pieces, np.int64),
                     np.array(offsets, np.int64), report)


class _WordIds(dict[str, list[int]]):
    """word -> ids, at least one and at most `room`; counts words that were cut, empty or unknown."""

    def __init__(self, tokenizer: Tokenizer, room: int):
        super().__init__()
        self.tokenizer, self.room = tokenizer, room
        self.cut = self.empty = self.unknown = 0
        self._odd: dict[str, tuple[bool, bool, bool]] = {}

    def __missing__(self, word: str) -> list[int]:
        ids = self.tokenizer.word_ids(word)
        odd = (len(ids) > self.room, not ids, self.tokenizer.vocabulary.roles.get("unk") in ids)
        if any(odd):
            self._odd[word] = odd
        self[word] = ids = some_ids(ids[: self.room], self.tokenizer)
        return ids

    def count(self, words: Sequence[str]) -> None:
        for word in words:
            if word in self._odd:
                cut, empty, unknown = self._odd[word]
                self.cut, self.empty, self.unknown = self.cut + cut, self.empty + empty, self.unknown + unknown


# ---------------------------------------------------------------- vectors


def layer_names(model: MiniBERT) -> list[str]:
    """The names of the layers in a cache; final_hidden is included if a final LayerNorm makes it differ."""
    names = [EMBEDDINGS, *(f"hidden_{i}" for i in range(model.config.num_layers))]
    return [*names, "final_hidden"] if model.modules.final_ln is not None else names


def chosen_layers(model: MiniBERT, layers: Sequence[str] | None) -> list[str]:
    """The requested layers, all by default, in the order of the model."""
    names = layer_names(model)
    for name in layers or ():
        if name not in names:
            raise InputError(f"There is no layer {name!r}; this model has {', '.join(names)}.")
    if layers is not None and not layers:
        raise InputError(f"At least one layer is needed; this model has {', '.join(names)}.")
    return [name for name in names if layers is None or name in layers]


Put = Callable[[int, Ints, npt.NDArray[Any], Ints, Ints], None]


def read_states(model: MiniBERT, tokenizer: Tokenizer, alignment: Alignment, names: Sequence[str], put: Put, *,
                team: Workers | None = None, progress: Callable[[int], None] | None = None) -> None:
    """Run the model over all windows, and pass the hidden states of the words to `put`.

    put(index of the layer in `names`, words (n,), states (tokens, H), start (n,), count (n,)): the pieces of each word
    are states[start : start + count]. It is called from several threads, once per word and layer.
    """
    require_vocabulary(model, tokenizer)
    rows = np.argsort(alignment.window, kind="stable")                        # words by window
    bounds = np.searchsorted(alignment.window[rows], np.arange(len(alignment.windows) + 1))
    lock, done = Lock(), 0

    asked = np.flatnonzero(np.diff(bounds))                                   # windows that answer for a word

    def use(some: IntArray, hidden: Array, cache: Cache) -> None:
        nonlocal done
        numbers, (B, T, _) = asked[some], hidden.shape
        here = rows[np.concatenate([np.arange(bounds[i], bounds[i + 1]) for i in numbers])]
        start = np.repeat(np.arange(B), np.diff(bounds)[numbers]) * T + alignment.start[here]
        for layer, name in enumerate(names):
            put(layer, here, cache[name].reshape(B * T, -1), start, alignment.pieces[here])
        with lock:
            done += len(numbers)
            if progress is not None:
                progress(done)

    read(model, [alignment.windows[i] for i in asked.tolist()], use, team=team or Workers(1))


def _mean(rows: npt.NDArray[Any], start: Ints, count: Ints) -> npt.NDArray[Any]:
    """The mean of rows[start : start + count] for each word; most words have one piece."""
    total: npt.NDArray[Any] = rows[start]
    for k in range(1, int(count.max(initial=1))):
        longer = np.flatnonzero(count > k)
        total[longer] += rows[start[longer] + k]
    several = np.flatnonzero(count > 1)
    total[several] /= count[several, None]
    return total


class Pooling(NamedTuple):
    """A function from the rows of a word's pieces to its vector, and the width of the vector in rows."""

    of: Callable[[npt.NDArray[Any], Ints, Ints], npt.NDArray[Any]]
    vectors: int


POOLINGS = {
    "mean": Pooling(_mean, 1),
    "first": Pooling(lambda rows, start, count: rows[start], 1),
    "last": Pooling(lambda rows, start, count: rows[start + count - 1], 1),
    # both ends side by side (Toshniwal et al. 2020): keeps an ending such as ##ing separate from the stem
    "ends": Pooling(lambda rows, start, count: np.concatenate([rows[start], rows[start + count - 1]], axis=1), 2)}
