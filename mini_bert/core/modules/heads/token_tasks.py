"""Heads that label or choose tokens.

    tokens:    scores = drop(t(h)) W + b  at the chosen tokens                                                 (M, C)
    span:      scores = drop(t(h)) W + b  for start and end, over the chosen tokens of each sequence           (2 B, T)
"""

from typing import Any

import numpy as np

from ...arrays import Array, BoolArray, IntArray
from ...config import ModelConfig
from ...context import Context
from ...params import Gradients, Parameters
from ...registry import register
from .tasks import Answers, TaskHead


@register("task_head", "tokens")
class TokenHead(TaskHead):
    """Labels of chosen tokens, such as the first piece of each word."""

    answers = Answers.TOKENS

    def forward(self, params: Parameters, hidden: Array, ctx: Context) -> tuple[Array, Any]:
        return self._score(params, hidden, ctx)                                  # (M, C)

    def backward(self, dscores: Array, cache: Any, grads: Gradients, ctx: Context) -> Array:
        return self._score_backward(dscores, cache, grads, ctx)

    def arranged(self, scores: Array, B: int, T: int) -> Array:
        return scores.reshape(B, T, -1)

    def example_targets(self, reads: BoolArray, rng: np.random.Generator) -> IntArray:
        return rng.integers(0, self.outputs, int(reads.sum()))

    def by_sequence(self, scores: Array, reads: BoolArray) -> list[Array]:
        return np.split(scores, np.cumsum(reads.sum(axis=1))[:-1])               # (tokens read, C) each


@register("task_head", "span")
class SpanHead(TokenHead):
    """Where an answer starts and where it ends: two distributions over the chosen tokens of each sequence."""

    answers = Answers.SPAN

    def __init__(self, config: ModelConfig, outputs: int = 2, dropout: float = 0.0, **more: Any):
        super().__init__(config, 2, dropout, **more)

    def arranged(self, scores: Array, B: int, T: int) -> Array:
        return scores.reshape(2, B, T)

    def forward(self, params: Parameters, hidden: Array, ctx: Context) -> tuple[Array, Any]:
        rows, cache = super().forward(params, hidden, ctx)                       # (M, 2)
        reads = ctx.select.mask()
        scores = np.full((2, *reads.shape), -np.inf, rows.dtype)
        scores[:, reads] = rows.T                                                # what is not read cannot be chosen
        return scores.reshape(-1, reads.shape[1]), (reads, cache)                # (2 B, T): all starts, then all ends

    def backward(self, dscores: Array, cache: Any, grads: Gradients, ctx: Context) -> Array:
        reads, inner = cache
        drows = np.ascontiguousarray(dscores.reshape(2, *reads.shape)[:, reads].T)
        return TokenHead.backward(self, drows, inner, grads, ctx)

    def example_targets(self, reads: BoolArray, rng: np.random.Generator) -> IntArray:
        return np.tile(reads.argmax(axis=1), 2)                                  # the first token read

    def by_sequence(self, scores: Array, reads: BoolArray) -> list[Array]:
        return list(scores.reshape(2, *reads.shape).swapaxes(0, 1))              # (2, T) each
