"""A layer that normalises the input of each sub-layer, and leaves the residual path free of norms.

    m = x + MHA(LN1(x))       y = m + FFN(LN2(m))

It takes all tokens of the batch and returns the selected ones. In backward a sum sends its gradient to both terms.
"""

from ...arrays import Array
from ...config import ModelConfig
from ...context import Context
from ...formulas import Steps, StepSpec, sum_of
from ...module import Sizes
from ...ops.dropout import dropout_backward, dropout_forward
from ...params import Gradients, Parameters
from ...registry import register
from ..norms.identity import NoNorm
from .sublayers import AROUND, Cache, Sublayers


@register("block", "pre_ln")
class PreLNLayer(Sublayers):
    """With `first_norm=false`, the first layer's attention reads the embeddings, normalised already, as they are."""

    def __init__(self, config: ModelConfig, layer: int, first_norm: bool = True):
        super().__init__(config, layer)
        if layer == 0 and not first_norm:
            self.ln1 = NoNorm()

    def forward(self, params: Parameters, x: Array, ctx: Context) -> tuple[Array, Cache]:
        """x (B*T, H) -> y (M, H), one row for each selected token."""
        normed, ln1 = self.ln1.forward(params, x)                                # (B*T, H): all are keys
        attended, attention = self.attention.forward(params, normed, ctx)
        middle, drop1 = dropout_forward(attended, self.rate, ctx.dropout("attention", self.rate))
        middle += ctx.select.take(x)                                             # (M, H)
        middle = ctx.hook("middle", middle)
        normed, ln2 = self.ln2.forward(params, middle)
        fed, ffn = self.feedforward.forward(params, normed, ctx)
        y, drop2 = dropout_forward(fed, self.rate, ctx.dropout("ffn", self.rate))
        y += middle
        y = ctx.hook("hidden", y)
        return y, {"x": x, **attention, "middle": middle, **ffn, "hidden": y,
                   "_parts": (attention, drop1, ln1, ffn, drop2, ln2)}

    def backward(self, dy: Array, cache: Cache, grads: Gradients, ctx: Context) -> Array:
        """dy (M, H) -> dx (B*T, H)."""
        attention, drop1, ln1, ffn, drop2, ln2 = cache["_parts"]
        dy = ctx.hook("hidden", dy)
        dnormed = self.feedforward.backward(dropout_backward(dy, drop2), ffn, grads, ctx)     # y = drop(fed) + middle
        dmiddle = self.ln2.backward(dnormed, ln2, grads)                         # normed = LN2(middle)
        dmiddle += dy
        dmiddle = ctx.hook("middle", dmiddle)
        dnormed = self.attention.backward(dropout_backward(dmiddle, drop1), attention, grads, ctx)
        dx = self.ln1.backward(dnormed, ln1, grads)                              # normed = LN1(x)
        return ctx.select.take_backward(dmiddle, dx)                             # middle = drop(attended) + take(x)

    def steps(self, x: str) -> Steps:
        yield self.ln1.step("attention_input", "Input of attention", "z", x)
        yield from self.attention.steps("attention_input")
        yield StepSpec("middle", "After attention", "m", sum_of(2), (x, "attention_output"), (), "residual",
                       why=AROUND)
        yield self.ln2.step("ffn_input", "Input of the feed-forward", "n", "middle")
        yield from self.feedforward.steps("ffn_input")
        yield StepSpec("hidden", "Output of the layer", "y", sum_of(2), ("middle", "ffn_output"), (), "residual",
                       why=AROUND)

    def floats(self, sizes: Sizes) -> int:
        # its input, the normed rows that attention and feed-forward read, and xhat of the first norm for all tokens
        everything = Sizes(sizes.tokens, sizes.tokens, sizes.length)
        return self.size * (2 * sizes.tokens + 2 * sizes.rows) + self.ln1.floats(everything) \
            + self._floats_of_parts(sizes)
