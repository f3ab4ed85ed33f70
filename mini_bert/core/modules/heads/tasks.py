"""The protocol of a task's head: scores of labels, from the hidden rows of some tokens.

    scores = drop(t(rows)) W + b                                                                               (N, C)

t does nothing unless the word says so: first_token(pooler=true) is BERT's classifier, which reads the model's own
pooler, first_token(transform=tanh) RoBERTa's, which has a layer of its own: see transform.py. Which rows these are, and
what is scored, is the head's: sequence_tasks.py and token_tasks.py. What is learned from the scores is the task's loss:
losses/loss.py.
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
from ...registry import Word, make
from ..linear import Linear
from .transform import Transform


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

    def real(self, ids: IntArray | None, mask: BoolArray) -> BoolArray:
        """The real tokens (B, T), of which `reads` chooses: the mask, unless a head knows them by their ids."""
        return mask

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
