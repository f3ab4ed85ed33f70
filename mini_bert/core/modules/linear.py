"""The linear map x W + b, bound to the names of its parameters."""

from ..arrays import Array
from ..formulas import Formula, StepSpec
from ..module import Layout
from ..ops.linear import FORMULA, LinearCache, linear_backward, linear_forward
from ..params import Gradients, Parameters, ParamSpec


class Linear:
    """x W + b, with W drawn with deviation `std`. No bias if `b` is None.

    `component`, `layer` and `symbol` describe the parameters; `axes` are those of W.
    """

    def __init__(self, W: str, b: str | None, n_in: int, n_out: int, std: float, *, component: str = "",
                 layer: int | None = None, symbol: str = "W", axes: tuple[str, ...] = ()):
        self.W, self.b, self.shape, self.std = W, b, (n_in, n_out), std
        self.component, self.layer, self.symbol, self.axes = component, layer, symbol, axes

    def layout(self) -> Layout:
        yield ParamSpec(self.W, self.shape, self.std, component=self.component, layer=self.layer, axes=self.axes,
                        symbol=self.symbol)
        if self.b is not None:
            yield ParamSpec(self.b, self.shape[1:], component=self.component, layer=self.layer, axes=self.axes[1:],
                            symbol=self.symbol.replace("W", "b", 1))

    def forward(self, params: Parameters, x: Array) -> tuple[Array, LinearCache]:
        return linear_forward(x, params[self.W], None if self.b is None else params[self.b])

    def backward(self, dy: Array, cache: LinearCache, grads: Gradients) -> Array:
        dx, _, db = linear_backward(dy, cache, with_dW=False)
        x, *_ = cache
        grads.add_product(self.W, x, dy)                  # dW = x^T dy, computed where it is added
        if self.b is not None and db is not None:
            grads.add(self.b, db)
        return dx

    def step(self, name: str, title: str, symbol: str, x: str, component: str, formula: Formula = FORMULA,
             axes: tuple[str, ...] = (), why: str = "") -> StepSpec:
        bias = () if self.b is None else (("b", self.b),)
        return StepSpec(name, title, symbol, formula, (x,), (("W", self.W), *bias), component, axes, why=why)
