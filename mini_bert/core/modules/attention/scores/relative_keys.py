"""Relative keys (Shaw et al. 2018): the query meets, besides the key itself, a learned vector for each distance.

    bias_ij = q_i . R[clip(j - i, -k, k)] / sqrt(d_k)            R (2 k + 1, d_k), shared by the heads of a layer

    dq_i += sum_j dS_ij R[...] / sqrt(d_k)        dR_r = sum over i, j at distance r of dS_ij q_i / sqrt(d_k)
"""

from math import sqrt
from typing import Any

import numpy as np

from .....errors import ConfigError
from ....arrays import Array, IntArray
from ....config import ModelConfig
from ....context import Context
from ....formulas import Formula, Steps, StepSpec
from ....module import BiasGradients, Layout, Sizes
from ....ops.embedding import embedding_backward, embedding_forward
from ....ops.relative.relative_scores import relative_scores_backward, relative_scores_forward
from ....params import Gradients, Parameters, ParamSpec
from ....registry import register
from .term import Term


@register("score_term", "relative_keys")
class RelativeKeys(Term):
    def __init__(self, config: ModelConfig, layer: int, reach: int = 16):
        super().__init__(config, layer)
        if not isinstance(reach, int) or reach < 1:
            raise ConfigError(f"relative_keys: reach must be a whole number of at least 1, not {reach}.")
        self.reach, self.scale = reach, 1 / sqrt(config.head_size)
        self.R = ParamSpec(f"relative_keys_{layer}", (2 * reach + 1, config.head_size), config.init_std,
                           component="attention", layer=layer, axes=("distances",), symbol="R")

    def layout(self) -> Layout:
        yield self.R

    def bias(self, params: Parameters, Q: Array, K: Array, ctx: Context) -> tuple[Array, Any]:
        T = len(ctx.key_positions())
        rows = np.clip(np.arange(1 - T, T), -self.reach, self.reach) + self.reach        # of each distance
        spread, lookup = embedding_forward(params[self.R.name], rows)
        spread *= self.scale
        scores, shifted = relative_scores_forward(Q, spread[None], T - 1 - ctx.query_positions(), T)
        return ctx.hook("distance_scores", scores), (lookup, shifted)

    def bias_backward(self, dscores: Array, cache: Any, grads: Gradients, ctx: Context) -> BiasGradients:
        lookup, shifted = cache
        dQ, (dspread,) = relative_scores_backward(ctx.hook("distance_scores", dscores), shifted)
        grads.add(self.R.name, embedding_backward(dspread, lookup) * self.scale)
        return dQ, None

    def _sequence_rows(self, T: int) -> IntArray:
        found: IntArray = np.clip(np.arange(T) - np.arange(T)[:, None], -self.reach, self.reach) + self.reach
        return found

    def _by_distance(self, scores: Array) -> Array:
        """One sequence's scores of distances (A, T, 2 k + 1) -> of keys (A, T, T), for the formula."""
        A, T, _ = scores.shape
        return np.take_along_axis(scores, np.broadcast_to(self._sequence_rows(T), (A, T, T)), axis=2)

    def _to_distance(self, dscores: Array) -> Array:
        """The way back: (A, T, T) -> (A, T, 2 k + 1)."""
        rows = self._sequence_rows(dscores.shape[1])
        return np.stack([(dscores * (rows == row)).sum(axis=2) for row in range(2 * self.reach + 1)], axis=2)

    def steps(self, Q: str, K: str) -> tuple[Steps, str, str, str | None]:
        formula = Formula("relative keys", "by_distance({0} {R}^T) / sqrt(d_k)",
                          ("to_distance(d{y}) {R} / sqrt(d_k)",),
                          {"R": "sum_heads(to_distance(d{y})^T {0}) / sqrt(d_k)"}, page="positions",
                          why="A query meets a learned vector for each distance, so a head can ask for “the word "
                              "before”.",
                          functions={"by_distance": self._by_distance, "to_distance": self._to_distance,
                                     "sum_heads": lambda x: x.sum(axis=0)})
        step = StepSpec("distance_scores", "Scores of distances", "S_r", formula, (Q,), (("R", self.R.name),),
                        "attention", ("key",))
        return iter((step,)), Q, K, step.name

    def floats(self, sizes: Sizes) -> int:
        return 0
