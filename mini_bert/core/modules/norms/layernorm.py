"""Layer normalisation, bound to the names of its parameters."""

from ...arrays import Array
from ...config import ModelConfig
from ...formulas import StepSpec
from ...module import Layout, Sizes
from ...ops.layernorm import FORMULA, LayerNormCache, layernorm_backward, layernorm_forward
from ...params import Gradients, Parameters, ParamSpec
from ...registry import register


@register("norm", "layernorm")
class LayerNorm:
    """The parameters are `name`_gamma and `name`_beta, before the layer's number."""

    def __init__(self, config: ModelConfig, name: str, layer: int | None = None, *, component: str = "norm"):
        suffix = "" if layer is None else f"_{layer}"
        self.gamma, self.beta = f"{name}_gamma{suffix}", f"{name}_beta{suffix}"
        self.size, self.eps = config.hidden_size, config.layernorm_eps
        self.layer, self.component = layer, component

    def layout(self) -> Layout:
        yield ParamSpec(self.gamma, (self.size,), mean=1.0, component=self.component, layer=self.layer, symbol="gamma")
        yield ParamSpec(self.beta, (self.size,), component=self.component, layer=self.layer, symbol="beta")

    def forward(self, params: Parameters, x: Array) -> tuple[Array, LayerNormCache]:
        return layernorm_forward(x, params[self.gamma], params[self.beta], self.eps)

    def backward(self, dy: Array, cache: LayerNormCache, grads: Gradients) -> Array:
        dx, dgamma, dbeta = layernorm_backward(dy, cache)
        grads.add(self.gamma, dgamma)
        grads.add(self.beta, dbeta)
        return dx

    def step(self, name: str, title: str, symbol: str, x: str) -> StepSpec:
        return StepSpec(name, title, symbol, FORMULA, (x,), (("gamma", self.gamma), ("beta", self.beta)), "layernorm")

    def floats(self, sizes: Sizes) -> int:
        return sizes.rows * self.size                     # xhat
