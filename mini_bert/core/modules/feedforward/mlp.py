"""The feed-forward network of BERT: FFN(x) = act(x W1 + b1) W2 + b2, row by row."""

from typing import Any

from ...arrays import Array
from ...config import ModelConfig
from ...context import Context
from ...formulas import Steps, StepSpec
from ...module import Layout, Sizes
from ...ops import Activation
from ...params import Gradients, Parameters
from ...registry import make, register
from ..linear import Linear


@register("feedforward", "mlp")
class MLP:
    def __init__(self, config: ModelConfig, layer: int, bias: bool = True):
        H, I = config.hidden_size, config.intermediate_size
        self.activation: Activation = make("activation", config.activation)
        b1, b2 = (f"b1_{layer}", f"b2_{layer}") if bias else (None, None)
        self.expand = Linear(f"W1_{layer}", b1, H, I, config.init_std, component="feedforward", layer=layer,
                             symbol="W_1")
        self.contract = Linear(f"W2_{layer}", b2, I, H, config.residual_std, component="feedforward", layer=layer,
                               symbol="W_2")

    def layout(self) -> Layout:
        yield from self.expand.layout()
        yield from self.contract.layout()

    def forward(self, params: Parameters, x: Array, ctx: Context) -> tuple[Array, dict[str, Any]]:
        """x (N, H) -> y (N, H)."""
        hidden, expand = self.expand.forward(params, ctx.hook("ffn_input", x))   # (N, I)
        hidden = ctx.hook("ffn_hidden", hidden)
        activated, activation = self.activation.apply(hidden, forward_only=ctx.forward_only)
        activated = ctx.hook("ffn_activation", activated)
        y, contract = self.contract.forward(params, activated)                   # (N, H)
        return ctx.hook("ffn_output", y), {"ffn_activation": activated, "_ops": (expand, activation, contract)}

    def backward(self, dy: Array, cache: dict[str, Any], grads: Gradients, ctx: Context) -> Array:
        """dy (N, H) -> dx (N, H)."""
        expand, activation, contract = cache["_ops"]
        dy = ctx.hook("ffn_output", dy)
        dactivated = self.contract.backward(dy, contract, grads)     # y = activated W2 + b2
        dactivated = ctx.hook("ffn_activation", dactivated)
        dhidden = self.activation.backward(dactivated, activation, dactivated)   # activated = act(hidden)
        dhidden = ctx.hook("ffn_hidden", dhidden)
        return ctx.hook("ffn_input", self.expand.backward(dhidden, expand, grads))       # hidden = x W1 + b1

    def steps(self, x: str) -> Steps:
        yield self.expand.step("ffn_hidden", "Feed-forward, expanded", "u", x, "feedforward",
                               why="Each token's vector is widened, so that the activation has many features to choose "
                                   "from.")
        yield StepSpec("ffn_activation", "Activation", "a", self.activation.formula, ("ffn_hidden",), (), "feedforward")
        yield self.contract.step("ffn_output", "Feed-forward, contracted", "f", "ffn_activation", "feedforward",
                                 why="Back to the model's width, to be added to what the sub-layer was given.")

    def floats(self, sizes: Sizes) -> int:
        return sizes.rows * self.expand.shape[1] * (1 + self.activation.extra)
