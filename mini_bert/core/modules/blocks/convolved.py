"""DeBERTa v2's first layer: BERT's layer, with a convolution over the tokens in parallel.

    y = LN2(m + FFN(m))               BERT's layer, of x                         m = LN1(x + MHA(x))
    z = LN3(y + act(n(x) W + b))      n(x): each token beside its neighbours, W (width H, H); padding counts as zeros

Attention finds what belongs together anywhere; the convolution sees the nearest tokens, in their order, and so learns
n-grams. All other layers are BERT's. Derivation: docs/math/neighbours.md
"""

from dataclasses import replace

import numpy as np

from ....errors import ConfigError
from ...arrays import Array
from ...config import ModelConfig
from ...context import Context, joined
from ...formulas import Formula, Steps, StepSpec, sum_of
from ...hooks import Hook
from ...module import Layout, Norm, Sizes
from ...ops import Activation
from ...ops.dropout import dropout_backward, dropout_forward
from ...ops.relative.neighbours import neighbours_backward, neighbours_forward
from ...params import Gradients, Parameters
from ...registry import Word, make, register
from ..linear import Linear
from .post_ln import PostLNLayer
from .sublayers import Cache


@register("block", "convolved")
class ConvolvedLayer(PostLNLayer):
    """`width` is that of the window, an odd number of tokens; `activation` is tanh unless the word says otherwise."""

    def __init__(self, config: ModelConfig, layer: int, width: int = 3, activation: Word | None = None):
        super().__init__(config, layer)
        if type(width) is not int or not 1 <= width <= 1000 or width % 2 == 0:
            raise ConfigError(f"convolved: width must be an odd number of tokens, not {width}.")
        self.width, self.convolves = width, layer == 0
        self.activation: Activation = make("activation", "tanh" if activation is None else activation)
        self.convolve = Linear("convolution_W", "convolution_b", width * self.size, self.size, config.init_std,
                               component="feedforward", layer=layer, symbol="W_C")
        self.ln3: Norm = make("norm", config.norm, config, "convolution_ln", component="norm")

    def layout(self) -> Layout:
        yield from super().layout()
        if self.convolves:
            yield from self.convolve.layout()
            yield from self.ln3.layout()

    def forward(self, params: Parameters, x: Array, ctx: Context) -> tuple[Array, Cache]:
        if not self.convolves:
            return PostLNLayer.forward(self, params, x, ctx)
        y, inner = PostLNLayer.forward(self, params, x, ctx.but(hook=_renamed(ctx.hook)))          # (M, H)
        select, hook = ctx.select, ctx.hook
        near = joined([neighbours_forward(self._real(x[rows], one).reshape(one.select.B, one.select.T, -1), self.width)
                       [0].reshape(one.select.tokens, -1) for one, _, rows in ctx.parts()])
        asked = hook("neighbours", select.take(near))                                    # (M, width H)
        convolved, convolve = self.convolve.forward(params, asked)
        convolved = hook("convolved", convolved)
        convolved, drop = dropout_forward(convolved, self.rate, ctx.dropout("convolution", self.rate))
        active, activation = self.activation.forward(convolved, None)
        total = hook("convolution_residual", y + hook("convolution_activation", active))
        z, ln3 = self.ln3.forward(params, total)
        z = hook("hidden", z)
        return z, {**inner, "hidden": z, "_convolution": (inner, self.width, convolve, drop, activation, ln3)}

    def backward(self, dz: Array, cache: Cache, grads: Gradients, ctx: Context) -> Array:
        if not self.convolves:
            return PostLNLayer.backward(self, dz, cache, grads, ctx)
        inner, width, convolve, drop, activation, ln3 = cache["_convolution"]
        select, hook = ctx.select, ctx.hook
        dtotal = hook("convolution_residual", self.ln3.backward(hook("hidden", dz), ln3, grads))
        dx = PostLNLayer.backward(self, dtotal, inner, grads, ctx.but(hook=_renamed(hook)))        # total = y + active
        dactive = hook("convolution_activation", dtotal)
        dconvolved = hook("convolved", dropout_backward(self.activation.backward(dactive, activation, None), drop))
        dasked = hook("neighbours", self.convolve.backward(dconvolved, convolve, grads))
        dnear = select.take_backward(dasked, np.zeros((len(dx), dasked.shape[1]), dx.dtype))
        dx += self._real(neighbours_backward(dnear.reshape(select.B, select.T, -1), width).reshape(len(dx), -1), ctx)
        return dx

    @staticmethod
    def _real(x: Array, ctx: Context) -> Array:
        """x (B*T, H) with zeros at padding; of a gradient, the way back of the same."""
        return x if ctx.key_mask is None else x * ctx.key_mask.reshape(-1, 1)

    def steps(self, x: str) -> Steps:
        if not self.convolves:
            yield from super().steps(x)
            return
        *steps, last = super().steps(x)
        yield from steps
        yield replace(last, name=_RENAMED[last.name], title="Output of BERT's layer")
        near = Formula("neighbours", "beside({0})", ("apart(d{y})",), page="neighbours",
                       why="Puts each token's neighbours next to it, so that a linear map sees a few words at once.",
                       functions={
            "beside": lambda x: neighbours_forward(x[None], self.width)[0][0],
            "apart": lambda dy: neighbours_backward(dy[None], self.width)[0]})
        yield StepSpec("neighbours", "Each token beside its neighbours", "n", near, (x,), (), "convolution")
        yield self.convolve.step("convolved", "Convolution", "c", "neighbours", "convolution")
        yield StepSpec("convolution_activation", "Convolution: activation", "a", self.activation.formula,
                       ("convolved",), (), "convolution")
        yield StepSpec("convolution_residual", "Residual sum around the convolution", "s", sum_of(2),
                       (_RENAMED[last.name], "convolution_activation"), (), "residual")
        yield self.ln3.step("hidden", "Output of the layer", "z", "convolution_residual")

    def floats(self, sizes: Sizes) -> int:
        own = self.size * (self.width + 1 + self.activation.extra) * sizes.rows + self.ln3.floats(sizes)
        return super().floats(sizes) + (own if self.convolves else 0)


_RENAMED = {"hidden": "layer_output"}     # the result of the layer is the convolution's, and this one BERT's


def _renamed(hook: Hook) -> Hook:
    return lambda name, value: hook(_RENAMED.get(name, name), value)
