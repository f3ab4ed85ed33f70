"""The feed-forward network of a layer: FFN(x) = act(x W1 + b1) W2 + b2, row by row."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ...arrays import Array
from ...config import ModelConfig
from ...hooks import Watch, unwatched
from ...params import Gradients, Parameters, ParamSpec
from ..linear import Linear


class Activation(NamedTuple):
    """An element-wise operation and its backward. Each may put its result into `out`, or leave it."""

    forward: Callable[[Array, Array | None], tuple[Array, Any]]
    backward: Callable[[Array, Any, Array | None], Array]
    extra: int = 0            # arrays of the input's size that it keeps beside its output


class FeedForward:
    def __init__(self, config: ModelConfig, layer: int, activation: Activation, residual_std: float):
        H, I = config.hidden_size, config.intermediate_size
        self.activation = activation
        self.expand = Linear(f"W1_{layer}", f"b1_{layer}", H, I, config.init_std)
        self.contract = Linear(f"W2_{layer}", f"b2_{layer}", I, H, residual_std)

    def layout(self) -> Iterator[ParamSpec]:
        yield from self.expand.layout()
        yield from self.contract.layout()

    def forward(self, params: Parameters, x: Array, watch: Watch = unwatched) -> tuple[Array, dict[str, Any]]:
        """x (N, H) -> y (N, H)."""
        hidden, expand = self.expand.forward(params, watch("ffn_input", x))      # (N, I)
        hidden = watch("ffn_hidden", hidden)
        activated, activation = self.activation.forward(hidden, hidden)
        activated = watch("ffn_activation", activated)
        y, contract = self.contract.forward(params, activated)                   # (N, H)
        return watch("ffn_output", y), {"ffn_activation": activated, "_ops": (expand, activation, contract)}

    def backward(self, dy: Array, cache: dict[str, Any], grads: Gradients, watch: Watch = unwatched) -> Array:
        """dy (N, H) -> dx (N, H)."""
        expand, activation, contract = cache["_ops"]
        dy = watch("ffn_output", dy)
        dactivated = self.contract.backward(dy, contract, grads)     # y = activated W2 + b2
        dactivated = watch("ffn_activation", dactivated)
        dhidden = self.activation.backward(dactivated, activation, dactivated)   # activated = act(hidden)
        dhidden = watch("ffn_hidden", dhidden)
        return watch("ffn_input", self.expand.backward(dhidden, expand, grads))  # hidden = x W1 + b1
