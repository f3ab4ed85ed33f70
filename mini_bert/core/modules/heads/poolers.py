"""Poolers: one vector for a sequence.

    tanh:   p = tanh(h_[CLS] W_p + b_p)

and the mean of a sequence's rows, which has no parameters:   p = sum over its n rows of h / n      dh = dp / n
"""

from typing import Any

import numpy as np

from ...arrays import Array, BoolArray
from ...config import ModelConfig
from ...context import Context
from ...formulas import Steps, StepSpec
from ...module import Layout, Sizes
from ...ops.tanh import FORMULA, tanh_backward, tanh_forward
from ...params import Gradients, Parameters
from ...registry import register
from ..linear import Linear


def first_tokens(mask: BoolArray) -> BoolArray:
    """The first token of each sequence (B, T), [CLS]."""
    first = np.zeros_like(mask)
    first[:, 0] = True
    return first


@register("pooler", "tanh")
class TanhPooler:
    """BERT's summary of a sequence: the first token's vector through a linear map and tanh."""

    def __init__(self, config: ModelConfig):
        self.project = Linear("pooler_W", "pooler_b", config.hidden_size, config.hidden_size, config.init_std,
                              component="pooler", symbol="W_P")

    def layout(self) -> Layout:
        yield from self.project.layout()

    def reads(self, mask: BoolArray, places: BoolArray | None) -> BoolArray:
        return first_tokens(mask)

    def forward(self, params: Parameters, hidden: Array, ctx: Context) -> tuple[Array, Any]:
        """hidden (B, H), the rows of [CLS] -> pooled (B, H)."""
        projected, project = self.project.forward(params, hidden)
        pooled, tanh = tanh_forward(projected)
        return pooled, (project, tanh)

    def backward(self, dpooled: Array, cache: Any, grads: Gradients, ctx: Context) -> Array:
        """dpooled (B, H) -> dhidden (B, H)."""
        project, tanh = cache
        return self.project.backward(tanh_backward(dpooled, tanh), project, grads)

    def steps(self, h: str) -> Steps:
        yield self.project.step("pooler_hidden", "Pooler: projection of [CLS]", "w", h, "head",
                                why="The vector of [CLS] stands for the whole text; the head of a task reads it.")
        yield StepSpec("pooled", "Pooled vector", "P", FORMULA, ("pooler_hidden",), (), "head")

    def floats(self, sizes: Sizes) -> int:
        return 2 * self.project.shape[0] * sizes.tokens // sizes.length
