"""RMS normalisation, bound to the name of its parameter."""

from ...arrays import Array
from ...config import ModelConfig
from ...formulas import StepSpec
from ...module import Layout, Sizes
from ...ops.rmsnorm import FORMULA, RMSNormCache, rmsnorm_backward, rmsnorm_forward
from ...params import Gradients, Parameters, ParamSpec
from ...registry import register


@register("norm", "rmsnorm")
class RMSNorm:
    """The parameter is `name`_gamma, before the layer's number."""

    def __init__(self, config: ModelConfig, name: str, layer: int | None = None, *, component: str = "norm",
                 size: int | None = None):
        self.size, self.eps = size or config.hidden_size, config.layernorm_eps
        self.gamma = ParamSpec(f"{name}_gamma" + ("" if layer is None else f"_{layer}"), (self.size,), mean=1.0,
                               component=component, layer=layer, symbol="gamma")

    def layout(self) -> Layout:
        yield self.gamma

    def forward(self, params: Parameters, x: Array) -> tuple[Array, RMSNormCache]:
        return rmsnorm_forward(x, params[self.gamma.name], self.eps)

    def backward(self, dy: Array, cache: RMSNormCache, grads: Gradients) -> Array:
        dx, dgamma = rmsnorm_backward(dy, cache)
        grads.add(self.gamma.name, dgamma)
        return dx

    def step(self, name: str, title: str, symbol: str, x: str) -> StepSpec:
        return StepSpec(name, title, symbol, FORMULA, (x,), (("gamma", self.gamma.name),), "layernorm")

    def floats(self, sizes: Sizes) -> int:
        return sizes.rows * self.size                     # xhat
