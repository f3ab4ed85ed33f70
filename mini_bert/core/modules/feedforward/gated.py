"""A feed-forward network with a gate (GLU): one expansion decides how much of the other passes.

    FFN(x) = (act(x W1 + b1) * (x W3 + b3)) W2 + b2,  row by row

With GELU it is GeGLU (ModernBERT), with SiLU SwiGLU (Llama). A product sends each factor the gradient times the other.
"""

from typing import Any

import numpy as np

from ...arrays import Array
from ...config import ModelConfig
from ...context import Context
from ...formulas import Formula, Steps, StepSpec
from ...module import Layout, Sizes
from ...params import Gradients, Parameters
from ...registry import register
from ..linear import Linear
from .mlp import MLP

PRODUCT = Formula("product", "{0} * {1}", ("d{y} * {1}", "d{y} * {0}"), page="gating",
                  why="One half of the network decides how much of the other half goes on.")


@register("feedforward", "gated")
class GatedMLP(MLP):
    def __init__(self, config: ModelConfig, layer: int, bias: bool = True):
        super().__init__(config, layer, bias)
        self.gate = Linear(f"W3_{layer}", f"b3_{layer}" if bias else None, *self.expand.shape, config.init_std,
                           component="feedforward", layer=layer, symbol="W_3")

    def layout(self) -> Layout:
        yield from self.expand.layout()
        yield from self.gate.layout()
        yield from self.contract.layout()

    def forward(self, params: Parameters, x: Array, ctx: Context) -> tuple[Array, dict[str, Any]]:
        """x (N, H) -> y (N, H)."""
        x = ctx.hook("ffn_input", x)
        hidden, expand = self.expand.forward(params, x)                          # (N, I)
        hidden = ctx.hook("ffn_hidden", hidden)
        activated, activation = self.activation.apply(hidden, forward_only=ctx.forward_only)
        activated = ctx.hook("ffn_activation", activated)
        opening, gate = self.gate.forward(params, x)                             # (N, I)
        opening = ctx.hook("ffn_gate", opening)
        y, contract = self.contract.forward(params, ctx.hook("ffn_gated", activated * opening))
        return ctx.hook("ffn_output", y), {"ffn_activation": activated, "_ops": (expand, activation, activated, opening,
                                                                                 gate, contract)}

    def backward(self, dy: Array, cache: dict[str, Any], grads: Gradients, ctx: Context) -> Array:
        """dy (N, H) -> dx (N, H)."""
        expand, activation, activated, opening, gate, contract = cache["_ops"]
        dy = ctx.hook("ffn_output", dy)
        dgated = ctx.hook("ffn_gated", self.contract.backward(dy, contract, grads))      # y = gated W2 + b2
        dopening = ctx.hook("ffn_gate", dgated * activated)                      # gated = activated opening
        dactivated = ctx.hook("ffn_activation", np.multiply(dgated, opening, out=dgated))
        dhidden = self.activation.backward(dactivated, activation, dactivated)   # activated = act(hidden)
        dx = self.expand.backward(ctx.hook("ffn_hidden", dhidden), expand, grads)        # hidden = x W1 + b1
        dx += self.gate.backward(dopening, gate, grads)                          # opening = x W3 + b3
        return ctx.hook("ffn_input", dx)

    def steps(self, x: str) -> Steps:
        yield self.expand.step("ffn_hidden", "Feed-forward, expanded", "u", x, "feedforward",
                               why="Each token's vector is widened, so that the activation has many features to choose "
                                   "from.")
        yield StepSpec("ffn_activation", "Activation", "a", self.activation.formula, ("ffn_hidden",), (), "feedforward")
        yield self.gate.step("ffn_gate", "Gate of the feed-forward", "g", x, "feedforward",
                             why="A second wide vector, by which the first one is multiplied.")
        yield StepSpec("ffn_gated", "Gated feed-forward", "a_g", PRODUCT, ("ffn_activation", "ffn_gate"), (),
                       "feedforward")
        yield self.contract.step("ffn_output", "Feed-forward, contracted", "f", "ffn_gated", "feedforward",
                                 why="Back to the model's width, to be added to what the sub-layer was given.")

    def floats(self, sizes: Sizes) -> int:
        return sizes.rows * self.expand.shape[1] * (3 + self.activation.extra)
