"""Vectors of texts, as the mean of the hidden states, and nearest neighbours.

A text longer than the model reads at once has the mean of its windows' vectors, weighted by tokens: see windows.py.
"""

from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..core.arrays import Array, IntArray
from ..core.cache import Cache
from ..core.model import MiniBERT
from ..errors import InputError
from ..text.tokenizer import Tokenizer
from ..workers import Workers
from .inputs import Progress, require_vocabulary
from .ragged import MOST_TEXTS, read
from .windows import mean_of_windows, text_parts


def embed(model: MiniBERT, tokenizer: Tokenizer, texts: Sequence[str], *, batch_size: int = MOST_TEXTS,
          normalise: bool = True, threads: int = 0, progress: Progress | None = None,
          too_long: list[int] | None = None) -> npt.NDArray[np.float32]:
    """One vector per text, (N, H): the mean over its tokens, special ones included, scaled to unit length.

    The indices of texts longer than the model reads at once, which are read in windows, are appended to `too_long`.
    `progress` is called with the number of texts whose last window has been read.
    """
    if isinstance(texts, str):
        raise InputError("embed takes a list of texts; put a single text into a list.")
    require_vocabulary(model, tokenizer)
    vectors = vectors_of_ids(model, tokenizer, [tokenizer.ids(text) for text in texts], batch_size=batch_size,
                             threads=threads, progress=progress, too_long=too_long)
    return unit_length(vectors) if normalise else vectors


def vectors_of_ids(model: MiniBERT, tokenizer: Tokenizer, ids: Sequence[Sequence[int]], *,
                   batch_size: int = MOST_TEXTS, team: Workers | None = None, threads: int = 0,
                   progress: Progress | None = None, too_long: list[int] | None = None) -> npt.NDArray[np.float32]:
    """The vectors of texts given as ids without special tokens, at their own length: the means of hidden states."""
    parts_of = [text_parts(row, tokenizer, model.config.max_seq_length).parts for row in ids]
    rows = [part.ids for parts in parts_of for part in parts]
    counts = np.array([len(parts) for parts in parts_of], np.int64)
    if too_long is not None:
        too_long += np.flatnonzero(counts > 1).tolist()
    owners, left = np.repeat(np.arange(len(ids)), counts), counts.copy()
    vectors, lock = np.zeros((len(rows), model.config.hidden_size), np.float32), Lock()

    def use(numbers: IntArray, hidden: Array, _: Cache) -> None:
        vectors[numbers] = hidden.mean(axis=1)
        if progress is not None:
            with lock:
                np.subtract.at(left, owners[numbers], 1)
                progress(int((left == 0).sum()))

    read(model, rows, use, batch_size=batch_size, team=team, threads=threads)
    return mean_of_windows(vectors, owners, [part.weight for parts in parts_of for part in parts])


def unit_length(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The rows, scaled to length 1; zeros stay."""
    scaled: npt.NDArray[np.float32] = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return scaled


class Neighbour(NamedTuple):
    """A text, and the cosine similarity of its vector to the query's."""

    text: str
    number: int
    cosine: float


def similar(model: MiniBERT, tokenizer: Tokenizer, query: str, texts: Sequence[str], *, top: int = 5,
            batch_size: int = MOST_TEXTS, threads: int = 0, progress: Progress | None = None,
            too_long: list[int] | None = None) -> list[Neighbour]:
    """The `top` texts whose vectors have the highest cosine similarity to the query's.

    The indices of texts longer than the model reads at once, which are read in windows, are appended to `too_long`.
    """
    if not texts:
        raise InputError("There are no texts to compare the query with.")
    vectors = embed(model, tokenizer, texts, batch_size=batch_size, threads=threads, progress=progress,
                    too_long=too_long)
    cosines = vectors @ embed(model, tokenizer, [query])[0]
    return [Neighbour(texts[i], i, float(cosines[i])) for i in np.argsort(-cosines, kind="stable")[:top].tolist()]
