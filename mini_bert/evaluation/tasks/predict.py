"""Predictions of a fine-tuned model: labels of texts, labels of words, answer spans."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...core.arrays import Array, BoolArray, IntArray
from ...core.cache import Cache
from ...core.task_model import TaskModel
from ...inference.ragged import read
from ...inference.windows import mean_of_windows
from ...workers import Workers
from ..formats.squad import Question
from .encode import Encoded, Windows

_LONGEST_ANSWER = 30          # tokens
_CANDIDATES = 20              # best starts and ends of a window that are combined


def row_scores(model: TaskModel, encoded: Encoded, team: Workers) -> list[Array]:
    """The head's scores for each sequence, in the order of the sequences: (answers, C), or (2, tokens) for spans."""
    found: list[Array] = [np.empty(0)] * len(encoded.rows)

    def use(numbers: IntArray, hidden: Array, cache: Cache) -> None:
        for i, values in zip(numbers.tolist(), model.scores_of(hidden, cache), strict=True):
            found[i] = values

    def select(numbers: IntArray, ids: IntArray) -> BoolArray:
        return model.reads(ids, np.ones(ids.shape, bool), encoded.places_of(numbers, ids.shape))

    read(model, encoded.rows, use, types=encoded.types, select=select, team=team)
    return found


def scores_of_texts(model: TaskModel, encoded: Encoded, team: Workers) -> Array:
    """The head's scores of each text (N, C): of one in several windows, their mean, weighted by tokens."""
    return mean_of_windows(np.concatenate(row_scores(model, encoded, team)), encoded.owners, encoded.weights)


def values_of_texts(model: TaskModel, encoded: Encoded, team: Workers) -> Array:
    """The probabilities of each text's labels, or its numbers (N, C)."""
    return model.loss.values(scores_of_texts(model, encoded, team))


def labels_of_words(model: TaskModel, encoded: Encoded, sentences: int, team: Workers) -> list[list[int]]:
    """The most likely label of each word, by sentence."""
    found: list[list[int]] = [[] for _ in range(sentences)]
    for owner, scores in zip(encoded.owners, row_scores(model, encoded, team), strict=True):
        found[owner] += scores.argmax(axis=1).tolist()        # the parts of a sentence are in order
    return found


class SpanAnswer(NamedTuple):
    """A span of the context, and its score relative to "not here"; None if the context has no tokens."""

    text: str
    start: int | None
    score: float | None


def answers(model: TaskModel, windows: Windows, questions: Sequence[Question], team: Workers) -> list[SpanAnswer]:
    """The best span for each question over all windows of its context."""
    best = [SpanAnswer("", None, None) for _ in questions]
    encoded = windows.encoded
    for row, (owner, scores) in enumerate(zip(encoded.owners, row_scores(model, encoded, team), strict=True)):
        offsets = windows.offsets[row]
        none = float(scores[:, windows.nowhere[row]].sum())   # [CLS] as start and end
        start, end, value = _best_span(scores[:, : len(offsets)], offsets)
        before = best[owner].score
        if np.isfinite(value) and (before is None or value - none > before):
            a, b = offsets[start][0], offsets[end][1]
            best[owner] = SpanAnswer(questions[owner].context[a:b], a, value - none)
    return best


def _best_span(scores: Array, offsets: list[tuple[int, int]]) -> tuple[int, int, float]:
    """The start and end inside the context with the largest sum of scores, and that sum."""
    inside = np.array([b > a for a, b in offsets])
    start, end = (np.where(inside, row, -np.inf) for row in scores)
    starts, ends = np.argsort(-start)[:_CANDIDATES], np.argsort(-end)[:_CANDIDATES]
    total = start[starts][:, None] + end[ends][None]
    length = ends[None] - starts[:, None]
    total = np.where((length >= 0) & (length < _LONGEST_ANSWER), total, -np.inf)
    i, j = np.unravel_index(int(total.argmax()), total.shape)
    if not np.isfinite(total[i, j]):                          # no valid combination: the best single token
        only = int((start + end).argmax())
        return only, only, float(start[only] + end[only])
    return int(starts[i]), int(ends[j]), float(total[i, j])
