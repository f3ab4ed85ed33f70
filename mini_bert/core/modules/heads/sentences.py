"""Heads on the pooled vector of two sentences: does the second follow the first, or are they in order?

    pooled:   scores = p W + b                     p (B, H) from the pooler;   0: they are as they were in the text
"""

from typing import Any

from ...arrays import Array, BoolArray
from ...config import ModelConfig
from ...context import Context
from ...formulas import Steps
from ...module import Layout, Sizes
from ...params import Gradients, Parameters
from ...registry import register
from ..linear import Linear
from .absent import NoHead


@register("sentence_head", "none")
def no_sentence_head(config: ModelConfig) -> NoHead:
    return NoHead("This model has no head for pairs of sentences.")


@register("sentence_head", "pooled")
class PooledSentenceHead:
    """BERT's next-sentence head, and ALBERT's sentence-order head: one linear map of the pooled vector."""

    def __init__(self, config: ModelConfig):
        self.linear = Linear("sentence_W", "sentence_b", config.hidden_size, 2, config.init_std,
                             component="sentence_head", symbol="W_N")

    def layout(self) -> Layout:
        yield from self.linear.layout()

    def reads(self, mask: BoolArray, places: BoolArray | None) -> BoolArray:
        return mask

    def forward(self, params: Parameters, pooled: Array, ctx: Context) -> tuple[Array, Any]:
        """pooled (B, H) -> scores (B, 2)."""
        return self.linear.forward(params, pooled)

    def backward(self, dscores: Array, cache: Any, grads: Gradients, ctx: Context) -> Array:
        """dscores (B, 2) -> dpooled (B, H)."""
        return self.linear.backward(dscores, cache, grads)

    def steps(self, h: str) -> Steps:
        yield self.linear.step("sentence_scores", "Scores of the sentences' relation", "n", h, "head")

    def floats(self, sizes: Sizes) -> int:
        return self.linear.shape[0] * sizes.tokens // sizes.length
