"""Attention with a gate on its result, before the heads are mixed.

    gated:       O = LN(C * gelu(x W_G)) W_O                    a gate for each feature, then a norm (GPT-BERT)
    head_gated:  O = (C_a * sigmoid(x w_a + b_a)) W_O           a gate for each head a

C is the joined context (M, H), and x the rows that ask. Softmax weights sum to one, so plain attention always takes
something; a gate can take nothing. A product sends each factor the gradient times the other.
"""

from typing import Any

import numpy as np

from ...arrays import Array
from ...config import ModelConfig
from ...context import Context
from ...formulas import Formula, Steps, StepSpec
from ...module import Layout, Norm, Sizes
from ...ops.gelu import FORMULA as GELU
from ...ops.gelu import gelu_backward, gelu_forward
from ...ops.silu import sigmoid
from ...params import Gradients, Parameters
from ...registry import make, register
from ..linear import Linear
from .self_attention import SelfAttention

SIGMOID = Formula("sigmoid", "sigmoid({0})", ("d{y} * {y} * (1 - {y})",), signed=False, page="gating",
                  why="A number between 0 and 1: how far the gate is open.")
# features and heads are joined; a gate of a head is repeated for its features
GATED = Formula("gated context", "join({0}) * {1}", ("split(d{y} * {1})", "d{y} * join({0})"),
                page="gating", why="The gate lets through what the token can use, and closes on the rest.")


@register("attention", "gated")
class GatedAttention(SelfAttention):
    def __init__(self, config: ModelConfig, layer: int, key_bias: bool = True):
        super().__init__(config, layer, key_bias)
        H = config.hidden_size
        self.gate = Linear(f"W_G_{layer}", f"b_G_{layer}" if config.attention_bias else None, H, H, config.init_std,
                           component="attention", layer=layer, symbol="W_G")
        self.gate_ln: Norm = make("norm", config.norm, config, "gate_ln", layer)

    def layout(self) -> Layout:
        yield from super().layout()
        yield from self.gate.layout()
        yield from self.gate_ln.layout()

    def _gate(self, params: Parameters, joined: Array, asking: Array, ctx: Context) -> tuple[Array, Any]:
        raw, gate = self.gate.forward(params, asking)
        opening, activation = gelu_forward(ctx.hook("gate_hidden", raw))
        opening = ctx.hook("gate", opening)
        normed, ln = self.gate_ln.forward(params, ctx.hook("gated_context", joined * opening))
        return ctx.hook("gate_normed", normed), (joined, opening, gate, activation, ln)

    def _gate_backward(self, dgated: Array, cache: Any, grads: Gradients, ctx: Context) -> tuple[Array, Array]:
        joined, opening, gate, activation, ln = cache
        dproduct = ctx.hook("gated_context", self.gate_ln.backward(ctx.hook("gate_normed", dgated), ln, grads))
        dopening = ctx.hook("gate", dproduct * joined)                           # product = joined opening
        draw = ctx.hook("gate_hidden", gelu_backward(dopening, activation))
        return dproduct * opening, self.gate.backward(draw, gate, grads)         # raw = asking W_G

    def _output_steps(self, x: str) -> Steps:
        yield self.gate.step("gate_hidden", "Gate, before GELU", "g_h", x, "attention")
        yield StepSpec("gate", "Gate", "g", GELU, ("gate_hidden",), (), "attention")
        yield StepSpec("gated_context", "Gated context", "C_g", GATED, ("context", "gate"), (), "attention")
        yield self.gate_ln.step("gate_normed", "Gated context, normalised", "C_n", "gated_context")
        yield self.output.step("attention_output", "Heads mixed", "O", "gate_normed", "attention")

    def floats(self, sizes: Sizes) -> int:
        return super().floats(sizes) + 5 * sizes.rows * self.gate.shape[1] + self.gate_ln.floats(sizes)


@register("attention", "head_gated")
class HeadGatedAttention(SelfAttention):
    """W_G and b_G start at zero: every gate is then a half, whatever it reads."""

    def __init__(self, config: ModelConfig, layer: int, key_bias: bool = True):
        super().__init__(config, layer, key_bias)
        self.gate = Linear(f"W_G_{layer}", f"b_G_{layer}", config.hidden_size, config.num_heads, 0.0,
                           component="attention", layer=layer, symbol="W_G")

    def layout(self) -> Layout:
        yield from super().layout()
        yield from self.gate.layout()

    def _gate(self, params: Parameters, joined: Array, asking: Array, ctx: Context) -> tuple[Array, Any]:
        raw, gate = self.gate.forward(params, asking)                            # (M, A)
        opening = ctx.hook("gate", sigmoid(ctx.hook("gate_hidden", raw)))
        wide = np.repeat(opening, self.head_size, axis=1)                        # (M, H)
        return ctx.hook("gated_context", joined * wide), (joined, opening, wide, gate)

    def _gate_backward(self, dgated: Array, cache: Any, grads: Gradients, ctx: Context) -> tuple[Array, Array]:
        joined, opening, wide, gate = cache
        dgated = ctx.hook("gated_context", dgated)
        by_head = (dgated * joined).reshape(*opening.shape, self.head_size)
        dopening = ctx.hook("gate", by_head.sum(axis=2))                         # wide = opening, repeated
        draw = ctx.hook("gate_hidden", dopening * opening * (1 - opening))       # opening = sigmoid(raw)
        return dgated * wide, self.gate.backward(draw, gate, grads)

    def _output_steps(self, x: str) -> Steps:
        d_k = self.head_size
        gated = Formula("gated heads", "join({0}) * wide({1})", ("split(d{y} * wide({1}))", "narrow(d{y} * join({0}))"),
                        page="gating", why="Each head can be turned down for a token that has no use for it.",
                        functions={"wide": lambda g: np.repeat(g, d_k, axis=1),
                                   "narrow": lambda g: g.reshape(len(g), -1, d_k).sum(axis=2)})
        yield self.gate.step("gate_hidden", "Gates of heads, before the sigmoid", "g_h", x, "attention", axes=("head",))
        yield StepSpec("gate", "Gates of heads", "g", SIGMOID, ("gate_hidden",), (), "attention", ("head",))
        yield StepSpec("gated_context", "Gated context", "C_g", gated, ("context", "gate"), (), "attention")
        yield self.output.step("attention_output", "Heads mixed", "O", "gated_context", "attention")

    def floats(self, sizes: Sizes) -> int:
        return super().floats(sizes) + sizes.rows * (3 * self.gate.shape[0] + 2 * self.gate.shape[1])
