"""Layer normalisation, bound to the names of its parameters."""

from ...arrays import Array
from ...config import ModelConfig
from ...formulas import StepSpec
from ...module import Layout, Sizes
from ...ops.layernorm import FORMULA, WITHOUT_BETA, LayerNormCache, layernorm_backward, layernorm_forward
from ...params import Gradients, Parameters, ParamSpec
from ...registry import register


@register("norm", "layernorm")
class LayerNorm:
    """The parameters are `name`_gamma and, unless `bias=false`, `name`_beta, before the layer's number."""

    def __init__(self, config: ModelConfig, name: str, layer: int | None = None, *, component: str = "norm",
                 size: int | None = None, bias: bool = True):
        suffix = "" if layer is None else f"_{layer}"
        self.gamma, self.beta = f"{name}_gamma{suffix}", f"{name}_beta{suffix}"
        self.size, self.eps, self.bias = size or config.hidden_size, config.layernorm_eps, bias
        self.layer, self.component = layer, component

    def layout(self) -> Layout:
        yield ParamSpec(self.gamma, (self.size,), mean=1.0, component=self.component, layer=self.layer, symbol="gamma")
        if self.bias:
            yield ParamSpec(self.beta, (self.size,), component=self.component, layer=self.layer, symbol="beta")

    def forward(self, params: Parameters, x: Array) -> tuple[Array, LayerNormCache]:
        return layernorm_forward(x, params[self.gamma], params[self.beta] if self.bias else None, self.eps)

    def backward(self, dy: Array, cache: LayerNormCache, grads: Gradients) -> Array:
        dx, dgamma, dbeta = layernorm_backward(dy, cache)
        grads.add(self.gamma, dgamma)
        if self.bias:
            grads.add(self.beta, dbeta)
        return dx

    def step(self, name: str, title: str, symbol: str, x: str) -> StepSpec:
        beta = (("beta", self.beta),) if self.bias else ()
        return StepSpec(name, title, symbol, FORMULA if self.bias else WITHOUT_BETA, (x,),
                        (("gamma", self.gamma), *beta), "layernorm")

    def floats(self, sizes: Sizes) -> int:
        return sizes.rows * self.size                     # xhat
