"""ALiBi: scores fall linearly with distance, at a fixed slope for each head.

    bias_aij = -m_a |i - j|            m_a = 2^(-8 (a + 1) / A)

Half of the heads look near, the others far; nothing is learned, and the length of a text is unlimited. The slopes are
those of the paper for A a power of two; for other A the missing ones are taken from the series of 2 A, as in its code.
"""

from typing import Any

import numpy as np

from ....arrays import Array
from ....config import ModelConfig
from ....context import Context
from ....formulas import Formula, Steps, StepSpec
from ....module import BiasGradients
from ....params import Gradients, Parameters
from ....registry import register
from .term import Term


def slopes(heads: int) -> Array:
    """m (A,)."""
    power = 1 << (heads.bit_length() - 1)                            # the largest power of two up to A
    series = 2.0 ** (-8 / power * np.arange(1, power + 1))
    more = 2.0 ** (-4 / power * np.arange(1, 2 * (heads - power), 2))
    return np.concatenate([series, more])


@register("score_term", "alibi")
class Alibi(Term):
    def __init__(self, config: ModelConfig, layer: int):
        super().__init__(config, layer)
        self.slopes = slopes(config.num_heads)

    def bias(self, params: Parameters, Q: Array, K: Array, ctx: Context) -> tuple[Array, Any]:
        queries, keys = ctx.query_positions(), ctx.key_positions()

        def compute() -> Array:
            distance = np.abs(keys - queries[:, :, None])                        # (1 or B, m, T)
            penalty: Array = (-self.slopes[:, None, None] * distance[:, None]).astype(Q.dtype)
            return penalty

        table = ctx.table(("alibi", queries.shape, queries.tobytes(), len(keys)), compute)
        return ctx.hook("alibi", table), len(queries) == 1

    def bias_backward(self, dscores: Array, cache: Any, grads: Gradients, ctx: Context) -> BiasGradients:
        ctx.hook("alibi", dscores.sum(axis=0, keepdims=True) if cache else dscores)      # for the reader alone
        return None, None

    def steps(self, Q: str, K: str) -> tuple[Steps, str, str, str | None]:
        formula = Formula("alibi", "-distances(t)", page="positions",
                          why="Takes something off the score of a distant key, so that near tokens count for more.",
                          zero="a token is at distance 0 from itself", functions={
            "distances": lambda t: self.slopes[:, None, None] * np.abs(t[:, None] - t)})
        step = StepSpec("alibi", "Penalty of distance", "D", formula, (), (), "attention", ("key",))
        return iter((step,)), Q, K, step.name
