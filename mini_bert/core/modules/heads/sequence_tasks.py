"""Heads that label whole sequences.

    sequence:  s = mean over the real tokens of h, or h of the first or last one;  scores = drop(t(s)) W + b   (B, C)
"""

from typing import Any

import numpy as np

from ...arrays import Array, BoolArray, IntArray
from ...config import ModelConfig
from ...context import Context
from ...params import Gradients, Parameters
from ...registry import register
from .poolers import first_tokens
from .tasks import TaskHead


def mean_forward(hidden: Array, counts: IntArray) -> Array:
    """hidden (M, H), the rows of B sequences one after the other, `counts` (B,) of each -> their means (B, H)."""
    mean: Array = np.add.reduceat(hidden, np.cumsum(counts) - counts, axis=0)
    mean /= counts[:, None].astype(hidden.dtype)
    return mean


def mean_backward(dmean: Array, counts: IntArray) -> Array:
    """dmean (B, H) -> dhidden (M, H)."""
    dtotal = dmean / counts[:, None].astype(dmean.dtype)                         # mean = total / count
    return np.repeat(dtotal, counts, axis=0)                                     # each row of a sum gets all of it


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

    With `padding=p`, the real tokens are those with another id than p, whatever the mask says (GPT-2's way).
    """

    def __init__(self, config: ModelConfig, outputs: int, dropout: float = 0.0, padding: int = -1, **more: Any):
        super().__init__(config, outputs, dropout, **more)
        self.padding = padding

    def real(self, ids: IntArray | None, mask: BoolArray) -> BoolArray:
        return mask if self.padding < 0 or ids is None else np.asarray(ids) != self.padding

    def reads(self, mask: BoolArray, places: BoolArray | None) -> BoolArray:
        last = np.zeros_like(mask)
        last[np.arange(len(mask)), (np.arange(mask.shape[1]) * mask).argmax(axis=1)] = True
        return last
