"""Heads of tasks: one score for each label, from the hidden rows of some tokens.

    sequence:  s = mean over the real tokens of h, or h of the first or last one;  scores = drop(t(s)) W + b   (B, C)
    tokens:    scores = drop(t(h)) W + b  at the chosen tokens                                                 (M, C)
    span:      scores = drop(t(h)) W + b  for start and end, over the chosen tokens of each sequence           (2 B, T)

t does nothing unless the word says so: first_token(pooler=true) is BERT's classifier, which reads the model's own
pooler, first_token(transform=tanh) RoBERTa's, which has a layer of its own: see transform.py. The
loss of each is the cross-entropy of its rows of scores, so all share its backward.
"""

from abc import ABC, abstractmethod
from enum import Enum
from typing import Any, ClassVar

import numpy as np

from ....errors import ConfigError
from ...arrays import Array, BoolArray, IntArray
from ...config import ModelConfig
from ...context import Context
from ...formulas import Steps
from ...module import Layout, Sizes
from ...ops.dropout import dropout_backward, dropout_forward
from ...params import Gradients, Parameters
from ...registry import Word, make, register
from ..linear import Linear
from .poolers import first_tokens
from .transform import Transform


def mean_forward(hidden: Array, counts: IntArray) -> Array:
    """hidden (M, H), the rows of B sequences one after the other, `counts` (B,) of each -> their means (B, H)."""
    mean: Array = np.add.reduceat(hidden, np.cumsum(counts) - counts, axis=0)
    mean /= counts[:, None].astype(hidden.dtype)
    return mean


def mean_backward(dmean: Array, counts: IntArray) -> Array:
    """dmean (B, H) -> dhidden (M, H)."""
    dtotal = dmean / counts[:, None].astype(dmean.dtype)                         # mean = total / count
    return np.repeat(dtotal, counts, axis=0)                                     # each row of a sum gets all of it


class Answers(Enum):
    """What the rows of a head's scores choose: what is learned with it, and how its predictions are read."""

    SEQUENCE = "one label per sequence"
    TOKENS = "one label per chosen token"
    SPAN = "the first and the last token of a span"


class TaskHead(ABC):
    """A linear map behind dropout. `outputs` is its width: labels, or two for a span.

    Before it may come the model's own `pooler`, or a `transform` by an activation, with a `norm`. Unless a subclass
    says otherwise, its scores (B, C) are of one label per sequence.
    """

    answers: ClassVar[Answers] = Answers.SEQUENCE

    def __init__(self, config: ModelConfig, outputs: int, dropout: float = 0.0, *, bias: bool = True,
                 pooler: bool = False, transform: Word | None = None, norm: bool = False, transform_bias: bool = True):
        if pooler and (transform is not None or config.pooler == "none"):
            raise ConfigError("A task's head with pooler=true needs a model with a pooler, and has no transform.")
        self.linear = Linear("task_W", "task_b" if bias else None, config.hidden_size, outputs, config.init_std,
                             component="task_head", symbol="W_C")
        self.own = None if transform is None else Transform(config, "task_transform_W", transform, bias=transform_bias,
                                                            norm="task_ln" if norm else None)
        self.before = make("pooler", config.pooler, config) if pooler else self.own
        self.outputs, self.rate = outputs, dropout

    def layout(self) -> Layout:
        if self.own is not None:                          # the pooler's parameters are the model's
            yield from self.own.layout()
        yield from self.linear.layout()

    def reads(self, mask: BoolArray, places: BoolArray | None) -> BoolArray:
        return mask if places is None else places

    def _score(self, params: Parameters, rows: Array, ctx: Context) -> tuple[Array, Any]:
        """rows (N, H) -> scores (N, C)."""
        before = None
        if self.before is not None:
            rows, before = self.before.forward(params, rows, ctx)
        dropped, drop = dropout_forward(rows, self.rate, ctx.dropout("head", self.rate))
        scores, linear = self.linear.forward(params, dropped)
        return scores, (before, drop, linear)

    def _score_backward(self, dscores: Array, cache: Any, grads: Gradients, ctx: Context) -> Array:
        """dscores (N, C) -> drows (N, H)."""
        before, drop, linear = cache
        drows = dropout_backward(self.linear.backward(dscores, linear, grads), drop)
        return drows if self.before is None else self.before.backward(drows, before, grads, ctx)

    @abstractmethod
    def forward(self, params: Parameters, hidden: Array, ctx: Context) -> tuple[Array, Any]:
        """hidden (M, H), a row for each token read, in reading order -> scores (N, C)."""

    @abstractmethod
    def backward(self, dscores: Array, cache: Any, grads: Gradients, ctx: Context) -> Array:
        """dscores (N, C) -> dhidden (M, H)."""

    def by_sequence(self, scores: Array, reads: BoolArray) -> list[Array]:
        """The scores (N, C), sequence by sequence."""
        return list(scores[:, None])                                             # (1, C) each

    def arranged(self, scores: Array, B: int, T: int) -> Array:
        """The scores of all tokens of a batch as (B, C), (B, T, C), or (2, B, T): starts and ends."""
        return scores

    def example_targets(self, reads: BoolArray, rng: np.random.Generator) -> IntArray:
        """Right answers, drawn at random, for a batch in which it reads these tokens: for gradient checks."""
        return rng.integers(0, self.outputs, len(reads))

    def steps(self, h: str) -> Steps:
        for step in () if self.before is None else self.before.steps(h):
            yield step
            h = step.name
        yield self.linear.step("task_scores", "Scores of labels", "c", h, "head")

    def floats(self, sizes: Sizes) -> int:
        return sizes.rows * self.linear.shape[0] + (0 if self.before is None else self.before.floats(sizes))


@register("task_head", "sequence")
class SequenceHead(TaskHead):
    """Labels of whole sequences, from the mean of their tokens."""

    def reads(self, mask: BoolArray, places: BoolArray | None) -> BoolArray:
        return mask

    def forward(self, params: Parameters, hidden: Array, ctx: Context) -> tuple[Array, Any]:
        counts = ctx.select.counts()
        scores, cache = self._score(params, mean_forward(hidden, counts), ctx)   # (B, C)
        return scores, (counts, cache)

    def backward(self, dscores: Array, cache: Any, grads: Gradients, ctx: Context) -> Array:
        counts, inner = cache
        return mean_backward(self._score_backward(dscores, inner, grads, ctx), counts)


@register("task_head", "first_token")
class FirstTokenHead(SequenceHead):
    """Labels of whole sequences, from [CLS] alone."""

    def reads(self, mask: BoolArray, places: BoolArray | None) -> BoolArray:
        return first_tokens(mask)


@register("task_head", "last_token")
class LastTokenHead(SequenceHead):
    """Labels of whole sequences, from the last real token alone, which has seen all others if attention is causal.

    With `padding=p`, the real tokens are those with another id than p, whatever the mask says.
    """

    def __init__(self, config: ModelConfig, outputs: int, dropout: float = 0.0, padding: int = -1, **more: Any):
        super().__init__(config, outputs, dropout, **more)
        self.padding = padding

    def reads(self, mask: BoolArray, places: BoolArray | None) -> BoolArray:
        last = np.zeros_like(mask)
        last[np.arange(len(mask)), (np.arange(mask.shape[1]) * mask).argmax(axis=1)] = True
        return last


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
