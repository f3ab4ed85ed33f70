"""The base of score terms: one that does nothing. A term overrides what it does."""

from collections.abc import Iterator
from typing import Any, ClassVar

from ....arrays import Array, BoolArray
from ....config import ModelConfig
from ....context import Context
from ....formulas import Steps, StepSpec
from ....module import BiasGradients, Layout, Sizes
from ....params import Gradients, Parameters


class Term:
    """Leaves queries and keys alone and adds nothing to the scores; see core/module.py, ScoreTerm."""

    hides_future: ClassVar[bool] = False          # may no query see a later key?
    hides_future_if_asked: ClassVar[bool] = False         # or in the sequences that ask for it alone? (Context.causal)

    def __init__(self, config: ModelConfig, layer: int):
        self.config, self.layer = config, layer

    def layout(self) -> Layout:
        return iter(())

    def rotate(self, params: Parameters, Q: Array, K: Array, ctx: Context) -> tuple[Array, Array, Any]:
        return Q, K, None

    def rotate_backward(self, dQ: Array, dK: Array, cache: Any, grads: Gradients, ctx: Context) -> tuple[Array, Array]:
        return dQ, dK

    def bias(self, params: Parameters, Q: Array, K: Array, ctx: Context) -> tuple[Array | None, Any]:
        return None, None

    def bias_backward(self, dscores: Array, cache: Any, grads: Gradients, ctx: Context) -> BiasGradients:
        return None, None

    def allowed(self, ctx: Context) -> BoolArray | None:
        return None

    def steps(self, Q: str, K: str) -> tuple[Steps, str, str, str | None]:
        nothing: Iterator[StepSpec] = iter(())
        return nothing, Q, K, None

    def floats(self, sizes: Sizes) -> int:
        return 0
