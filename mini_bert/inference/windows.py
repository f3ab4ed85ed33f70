"""Texts that are longer than a model reads at once: windows that overlap by half, the same for every command.

A window shows as many tokens as fit, and the next one begins halfway through it. Each token is answered for by one
window alone, the one in which it is further from the edge:

    what is asked of a token (a masked word, the label of a word, a word's vector)    comes from its window
    what is asked of a whole text (scores of labels, a vector)                        is the mean over the windows,
                                         each with the number of tokens that it answers for as its weight

A text that fits is one window, and the mean is the window's own value.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..core.arrays import Array
from ..text.tokenizer import Tokenizer
from .inputs import some_ids


class Window(NamedTuple):
    """Units [first, last) of a text, which are tokens or whole words, of which it answers for [begin, end)."""

    first: int
    last: int
    begin: int
    end: int


def windows(lengths: Sequence[int], room: int) -> list[Window]:
    """Windows over units of these lengths in tokens, none of them longer than `room`, each as long as possible."""
    if sum(lengths) <= room:
        return [Window(0, len(lengths), 0, len(lengths))]
    spans = _spans(lengths, room)
    # of the units in two windows, the first half belongs to the earlier one
    borders = [0, *((after[0] + before[1]) // 2 for before, after in pairwise(spans)), len(lengths)]
    return [Window(*span, *owned) for span, owned in zip(spans, pairwise(borders), strict=True)]


def _spans(lengths: Sequence[int], room: int) -> list[tuple[int, int]]:
    """[first, last) of each window."""
    spans: list[tuple[int, int]] = []
    first = 0
    while True:
        last, used = first, 0
        while last < len(lengths) and used + lengths[last] <= room:
            used += lengths[last]
            last += 1
        spans.append((first, last))
        if last == len(lengths):
            return spans
        half, following = 0, first
        while following < last and half + lengths[following] <= max(used // 2, 1):
            half += lengths[following]
            following += 1
        first = max(following, first + 1)


class Part(NamedTuple):
    """A window with its special tokens. `window` counts the tokens of the text that is in windows."""

    ids: list[int]
    types: list[int]
    window: Window

    @property
    def weight(self) -> int:
        """Its weight in the mean over the windows of a text; a text without tokens has one window, which counts."""
        return max(1, self.window.end - self.window.begin)


class Parts(NamedTuple):
    """A text, or a pair of texts, as a model reads it; `cut` says whether part of a text is in no window."""

    parts: list[Part]
    cut: bool


def text_parts(ids: Sequence[int], tokenizer: Tokenizer, longest: int) -> Parts:
    """The windows of one text, given its ids without special tokens; each has at most `longest` ids."""
    room, own = max(1, longest - tokenizer.template.added()), list(ids)
    parts = [Part(*tokenizer.template.apply(own[found.first : found.last]), found)
             for found in windows([1] * len(own), room)]
    if not parts[0].ids:                                  # a model has to read something
        parts = [Part(*tokenizer.template.apply(some_ids([], tokenizer)), Window(0, 0, 0, 0))]
    return Parts(parts, False)


def pair_parts(first: Sequence[int], second: Sequence[int], tokenizer: Tokenizer, longest: int) -> Parts:
    """The windows of a pair: those of the longer text, each with the whole shorter one, of which at most as many
    tokens are read as fill half of a window."""
    room = max(2, longest - tokenizer.template.added(pair=True))
    a, b = list(first), list(second)
    if len(a) + len(b) <= room:
        return Parts([Part(*tokenizer.template.apply(a, b), Window(0, len(b), 0, len(b)))], False)
    swapped = len(a) > len(b)
    whole, long = (b, a) if swapped else (a, b)
    kept = whole[: room // 2]
    parts = []
    for found in windows([1] * len(long), room - len(kept)):
        some = long[found.first : found.last]
        parts.append(Part(*(tokenizer.template.apply(some, kept) if swapped else tokenizer.template.apply(kept, some)),
                          found))
    return Parts(parts, len(kept) < len(whole))


def mean_of_windows(rows: Array, owners: Sequence[int] | npt.NDArray[np.int64], weights: Sequence[int]) -> Array:
    """rows (W, n), one for each window, in the order of their texts -> the weighted mean of each text (N, n).

    The sums are in float64, so that the mean of one window is its row, bit for bit.
    """
    if not len(rows):
        return rows
    starts = np.flatnonzero(np.diff(np.asarray(owners), prepend=-1))
    shares = np.asarray(weights, np.float64)[:, None]
    means: Array = np.add.reduceat(rows * shares, starts, axis=0) / np.add.reduceat(shares, starts, axis=0)
    return means.astype(rows.dtype)
