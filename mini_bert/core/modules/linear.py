"""The two operations that own parameters by themselves, bound to their names.

A component holds names, never arrays: `forward(params, x)` reads the values from the Parameters that
it is given, and `backward(dy, cache, grads)` adds to the gradients under the same names. One component
therefore serves any parameters (averaged, perturbed, of another precision), and one that is used twice
gets the sum of both gradients.
"""

from collections.abc import Iterator

from ..arrays import Array
from ..ops.layernorm import LayerNormCache, layernorm_backward, layernorm_forward
from ..ops.linear import LinearCache, linear_backward, linear_forward
from ..params import Gradients, Parameters, ParamSpec


class Linear:
    """x W + b, with W normal of deviation `std` at the start. No bias if `b` is None."""

    def __init__(self, W: str, b: str | None, n_in: int, n_out: int, std: float):
        self.W, self.b, self.shape, self.std = W, b, (n_in, n_out), std

    def layout(self) -> Iterator[ParamSpec]:
        yield ParamSpec(self.W, self.shape, std=self.std)
        if self.b is not None:
            yield ParamSpec(self.b, self.shape[1:])

    def forward(self, params: Parameters, x: Array) -> tuple[Array, LinearCache]:
        return linear_forward(x, params[self.W], None if self.b is None else params[self.b])

    def backward(self, dy: Array, cache: LinearCache, grads: Gradients) -> Array:
        dx, _, db = linear_backward(dy, cache, with_dW=False)
        x, *_ = cache
        grads.add_product(self.W, x, dy)                  # dW = x^T dy, computed where it is added
        if self.b is not None and db is not None:
            grads.add(self.b, db)
        return dx


class LayerNorm:
    """Layer normalisation with the parameters `name`_gamma and `name`_beta (before the layer's number)."""

    def __init__(self, name: str, size: int, eps: float, layer: int | None = None):
        suffix = "" if layer is None else f"_{layer}"
        self.gamma, self.beta = f"{name}_gamma{suffix}", f"{name}_beta{suffix}"
        self.size, self.eps = size, eps

    def layout(self) -> Iterator[ParamSpec]:
        yield ParamSpec(self.gamma, (self.size,), mean=1.0)
        yield ParamSpec(self.beta, (self.size,))

    def forward(self, params: Parameters, x: Array) -> tuple[Array, LayerNormCache]:
        return layernorm_forward(x, params[self.gamma], params[self.beta], self.eps)

    def backward(self, dy: Array, cache: LayerNormCache, grads: Gradients) -> Array:
        dx, dgamma, dbeta = layernorm_backward(dy, cache)
        grads.add(self.gamma, dgamma)
        grads.add(self.beta, dbeta)
        return dx
