"""BERT's layer: each sub-layer is added to its input, and the sum is normalised.

    m = LN1(x + MHA(x))       y = LN2(m + FFN(m))

It takes all tokens of the batch and returns the selected ones. In backward a sum sends its gradient to both terms, so
each residual path adds the gradient that bypasses the sub-layer.
"""

from ...arrays import Array
from ...context import Context
from ...formulas import SAME, Steps, StepSpec, sum_of
from ...module import Sizes
from ...ops.dropout import dropout_backward, dropout_forward
from ...params import Gradients, Parameters
from ...registry import register
from .sublayers import AROUND, Cache, Sublayers


@register("block", "post_ln")
class PostLNLayer(Sublayers):
    def forward(self, params: Parameters, x: Array, ctx: Context) -> tuple[Array, Cache]:
        """x (B*T, H) -> y (M, H), one row for each selected token."""
        hook = ctx.hook
        attended, attention = self.attention.forward(params, x, ctx)
        total, drop1 = dropout_forward(attended, self.rate, ctx.dropout("attention", self.rate))
        total += ctx.select.take(x)                                              # (M, H)
        middle, ln1 = self.ln1.forward(params, hook("attention_residual", total))
        middle = hook("middle", middle)
        fed, ffn = self.feedforward.forward(params, middle, ctx)
        total, drop2 = dropout_forward(fed, self.rate, ctx.dropout("ffn", self.rate))
        total += middle
        y, ln2 = self.ln2.forward(params, hook("ffn_residual", total))
        y = hook("hidden", y)
        return y, {"x": x, **attention, "middle": middle, **ffn, "hidden": y,
                   "_parts": (attention, drop1, ln1, ffn, drop2, ln2)}

    def backward(self, dy: Array, cache: Cache, grads: Gradients, ctx: Context) -> Array:
        """dy (M, H) -> dx (B*T, H)."""
        attention, drop1, ln1, ffn, drop2, ln2 = cache["_parts"]
        hook = ctx.hook
        dy = hook("hidden", dy)
        dsum = hook("ffn_residual", self.ln2.backward(dy, ln2, grads))           # y = LN2(drop(fed) + middle)
        dmiddle = self.feedforward.backward(dropout_backward(dsum, drop2), ffn, grads, ctx)
        dmiddle += dsum
        dmiddle = hook("middle", dmiddle)
        dsum = self.ln1.backward(dmiddle, ln1, grads)                            # middle = LN1(drop(attended) + x)
        dsum = hook("attention_residual", dsum)
        dx = self.attention.backward(dropout_backward(dsum, drop1), attention, grads, ctx)
        return ctx.select.take_backward(dsum, dx)

    def steps(self, x: str) -> Steps:
        yield StepSpec("attention_input", "Input of attention", "z", SAME, (x,), (), "residual")
        yield from self.attention.steps("attention_input")
        yield StepSpec("attention_residual", "Residual sum around attention", "r", sum_of(2), (x, "attention_output"),
                       (), "residual", why=AROUND)
        yield self.ln1.step("middle", "After attention", "m", "attention_residual")
        yield StepSpec("ffn_input", "Input of the feed-forward", "n", SAME, ("middle",), (), "residual")
        yield from self.feedforward.steps("ffn_input")
        yield StepSpec("ffn_residual", "Residual sum around the feed-forward", "q", sum_of(2), ("middle", "ffn_output"),
                       (), "residual", why=AROUND)
        yield self.ln2.step("hidden", "Output of the layer", "y", "ffn_residual")

    def floats(self, sizes: Sizes) -> int:
        # its input, and the middle, which the feed-forward reads
        return self.size * (sizes.tokens + sizes.rows) + self.ln1.floats(sizes) + self._floats_of_parts(sizes)
