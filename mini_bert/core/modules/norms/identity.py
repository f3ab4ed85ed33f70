"""No normalisation: y = x. For a position without a norm, such as the first one in ModernBERT."""

from ...arrays import Array
from ...formulas import SAME, StepSpec
from ...module import Layout, Sizes
from ...params import Gradients, Parameters


class NoNorm:
    def layout(self) -> Layout:
        return iter(())

    def forward(self, params: Parameters, x: Array) -> tuple[Array, None]:
        return x, None

    def backward(self, dy: Array, cache: None, grads: Gradients) -> Array:
        return dy

    def step(self, name: str, title: str, symbol: str, x: str) -> StepSpec:
        return StepSpec(name, title, symbol, SAME, (x,), (), "residual",
                        why="This model has no norm here: the value goes on as it is.")

    def floats(self, sizes: Sizes) -> int:
        return 0
