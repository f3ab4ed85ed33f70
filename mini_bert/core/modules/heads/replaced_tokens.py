"""ELECTRA's discriminator: was this token replaced? One number for each token.

    logit = act(h W_R + b_R) W_D + b_D                 above zero: replaced
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
from .transform import Transform


@register("mlm_head", "replaced_tokens")
class ReplacedTokensHead:
    """It fills the place of the MLM head: the model's `forward` gives its logits (B, T)."""

    def __init__(self, config: ModelConfig):
        self.transform = Transform(config, "replaced_transform_W", config.activation, component="mlm_head",
                                   shown="head", title="Head", symbol="W_R")
        self.decide = Linear("replaced_W", "replaced_b", config.hidden_size, 1, config.init_std, component="mlm_head",
                             symbol="W_D")

    def layout(self) -> Layout:
        yield from self.transform.layout()
        yield from self.decide.layout()

    def reads(self, mask: BoolArray, places: BoolArray | None) -> BoolArray:
        return mask

    def forward(self, params: Parameters, hidden: Array, ctx: Context) -> tuple[Array, Any]:
        """hidden (M, H) -> logits (M, 1)."""
        transformed, transform = self.transform.forward(params, hidden, ctx)
        logits, decide = self.decide.forward(params, transformed)
        return logits, (transform, decide)

    def backward(self, dlogits: Array, cache: Any, grads: Gradients, ctx: Context) -> Array:
        """dlogits (M, 1) -> dhidden (M, H)."""
        transform, decide = cache
        dtransformed = self.decide.backward(dlogits, decide, grads)              # logits = transformed W_D + b_D
        return self.transform.backward(dtransformed, transform, grads, ctx)

    def steps(self, h: str) -> Steps:
        yield from self.transform.steps(h)
        yield self.decide.step("logits", "Was the token replaced?", "L", "head_activation", "head")

    def floats(self, sizes: Sizes) -> int:
        return self.transform.floats(sizes)
