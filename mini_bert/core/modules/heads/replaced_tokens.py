"""ELECTRA's discriminator: was this token replaced? One number for each token.

    logit = act(h W_R + b_R) W_D + b_D                 above zero: replaced
"""

from typing import Any

from ...arrays import Array, BoolArray
from ...config import ModelConfig
from ...context import Context
from ...formulas import Steps, StepSpec
from ...module import Layout, Sizes
from ...ops import Activation
from ...params import Gradients, Parameters
from ...registry import make, register
from ..linear import Linear


@register("mlm_head", "replaced_tokens")
class ReplacedTokensHead:
    """It fills the place of the MLM head: the model's `forward` gives its logits (B, T)."""

    def __init__(self, config: ModelConfig):
        H = config.hidden_size
        self.activation: Activation = make("activation", config.activation)
        self.transform = Linear("replaced_transform_W", "replaced_transform_b", H, H, config.init_std,
                                component="mlm_head", symbol="W_R")
        self.decide = Linear("replaced_W", "replaced_b", H, 1, config.init_std, component="mlm_head", symbol="W_D")

    def layout(self) -> Layout:
        yield from self.transform.layout()
        yield from self.decide.layout()

    def reads(self, mask: BoolArray, places: BoolArray | None) -> BoolArray:
        return mask

    def forward(self, params: Parameters, hidden: Array, ctx: Context) -> tuple[Array, Any]:
        """hidden (M, H) -> logits (M, 1)."""
        transformed, transform = self.transform.forward(params, hidden)
        transformed = ctx.hook("head_hidden", transformed)
        activated, activation = self.activation.forward(transformed, transformed)
        logits, decide = self.decide.forward(params, ctx.hook("head_activation", activated))
        return logits, (transform, activation, decide)

    def backward(self, dlogits: Array, cache: Any, grads: Gradients, ctx: Context) -> Array:
        """dlogits (M, 1) -> dhidden (M, H)."""
        transform, activation, decide = cache
        dactivated = ctx.hook("head_activation", self.decide.backward(dlogits, decide, grads))
        dtransformed = self.activation.backward(dactivated, activation, dactivated)
        return self.transform.backward(ctx.hook("head_hidden", dtransformed), transform, grads)

    def steps(self, h: str) -> Steps:
        yield self.transform.step("head_hidden", "Head: transform", "v", h, "head")
        yield StepSpec("head_activation", "Head: activation", "g", self.activation.formula, ("head_hidden",), (),
                       "head")
        yield self.decide.step("logits", "Was the token replaced?", "L", "head_activation", "head")

    def floats(self, sizes: Sizes) -> int:
        return sizes.rows * self.transform.shape[0] * (2 + self.activation.extra)
