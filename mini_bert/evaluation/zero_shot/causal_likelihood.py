"""Log-likelihoods of many short texts by a causal model.

    log p(text) = sum over its pieces t of log p(t | the pieces before t)

The first piece is predicted from the token that a text begins with, such as [CLS]; the token at its end is not
predicted. One pass reads a text, so this is as many times faster than a pseudo-log-likelihood as the text has pieces.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...core.arrays import Array, IntArray
from ...core.model import MiniBERT
from ...inference.inputs import opening_ids, require_vocabulary
from ...text.tokenizer import Tokenizer
from ..probabilities import target_losses
from .pseudo_likelihood import FloatArray, Likelihoods, ProgressCallback, computed_by_length

_TOKENS = 1024                # per batch: every one of them has logits


class _Window(NamedTuple):
    """A part of a text as the model reads it; the pieces from `first` on are predicted."""

    text: int
    ids: list[int]
    first: int


def causal_log_likelihoods(model: MiniBERT, tokenizer: Tokenizer, texts: Sequence[str], *, threads: int = 0,
                           progress: ProgressCallback | None = None) -> Likelihoods:
    """The log-likelihood of each text. One that is longer than the model's maximum is read in windows that overlap by
    half, and each piece is predicted once."""
    require_vocabulary(model, tokenizer)
    ids, counts = tokenizer.ids_array(texts)
    lengths = counts.astype(np.int64)
    start, room = opening_ids(tokenizer), model.config.max_seq_length
    windows = [part for number, own in enumerate(np.split(ids, np.cumsum(lengths)[:-1]))
               for part in _windows(number, [*start, *own.tolist()], len(start), room)]
    totals = np.zeros(len(texts))
    unknown = np.unique(np.repeat(np.arange(len(texts)), lengths)[ids == tokenizer.vocabulary.roles.get("unk", -1)])

    def one(some: IntArray) -> FloatArray:
        rows = np.array([windows[i].ids for i in some.tolist()], np.int64)
        predicts = np.arange(1, rows.shape[1]) >= np.array([windows[i].first for i in some.tolist()])[:, None]
        asked = np.concatenate([predicts, np.zeros((len(rows), 1), bool)], axis=1)    # from the token before each
        logits, _ = model.forward(rows, positions=asked, forward_only=True)
        logs = -target_losses(logits, rows[:, 1:][predicts])
        found: FloatArray = np.bincount(np.nonzero(predicts)[0], logs, len(rows)).astype(np.float64)
        return found

    for some, logs in computed_by_length([part.ids for part in windows], one, _TOKENS, threads, progress):
        np.add.at(totals, [windows[i].text for i in some.tolist()], logs)
    return Likelihoods({"token": totals}, lengths, int((lengths + len(start) > room).sum()), len(unknown), len(windows))


def _windows(text: int, ids: list[int], start: int, room: int) -> list[_Window]:
    """The whole text if there is room for it; a text without pieces has none."""
    if len(ids) == start:
        return []
    parts, first = [], start                      # the first piece that has not been predicted yet
    while first < len(ids):
        begin = 0 if first == start else first - max(1, room // 2)
        parts.append(_Window(text, ids[begin : begin + room], first - begin))
        first = begin + room
    return parts


def next_token_logits(model: MiniBERT, tokenizer: Tokenizer, beginnings: Sequence[Sequence[int]], pieces: IntArray, *,
                      threads: int = 0, progress: ProgressCallback | None = None) -> FloatArray:
    """The logits of some pieces (N, n) as the next token after each of N beginnings, given without special tokens."""
    start, room = opening_ids(tokenizer), model.config.max_seq_length
    rows = [[*start, *ids][-room:] for ids in beginnings]
    found = np.zeros(pieces.shape)

    def one(some: IntArray) -> Array:
        read = np.array([rows[i] for i in some.tolist()], np.int64)
        last = np.zeros(read.shape, bool)
        last[:, -1] = True
        return np.take_along_axis(model.forward(read, positions=last, forward_only=True)[0], pieces[some], axis=1)

    for some, logits in computed_by_length(rows, one, 2 * _TOKENS, threads, progress):
        found[some] = logits
    return found
