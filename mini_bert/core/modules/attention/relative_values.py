"""Relative values (Shaw et al. 2018): the value taken from a token has a part that depends only on its distance.

    C_i = sum_j P_ij (v_j + R[clip(j - i, -k, k)])            R (2 k + 1, d_k), shared by the heads of a layer

    dP_ij += dC_i . R[...]        dR_r = sum over i, j at distance r of P_ij dC_i

The weights of each distance are brought into a column of their own (the transpose of the relative shift), so that both
sums are products of matrices. With `score_terms: relative_keys` it is Shaw's whole attention.
"""

from typing import Any, ClassVar

import numpy as np

from ....errors import ConfigError
from ...arrays import Array
from ...config import ModelConfig
from ...context import Context
from ...formulas import Formula, Steps, StepSpec
from ...module import Layout, Sizes
from ...ops.blockwise_attention import BlockwiseCache
from ...ops.embedding import embedding_backward, embedding_forward
from ...ops.relative.relative_shift import relative_shift_backward, relative_shift_forward
from ...params import Gradients, Parameters, ParamSpec
from ...registry import register
from .self_attention import SelfAttention


@register("attention", "relative_values")
class RelativeValuesAttention(SelfAttention):
    reads_weights: ClassVar[bool] = True

    def __init__(self, config: ModelConfig, layer: int, reach: int = 16, key_bias: bool = True):
        super().__init__(config, layer, key_bias)
        if not isinstance(reach, int) or reach < 1:
            raise ConfigError(f"relative_values: reach must be a whole number of at least 1, not {reach}.")
        self.reach = reach
        self.R = ParamSpec(f"relative_values_{layer}", (2 * reach + 1, config.head_size), config.init_std,
                           component="attention", layer=layer, axes=("distances",), symbol="R_V")

    def layout(self) -> Layout:
        yield from super().layout()
        yield self.R

    def _more_values(self, params: Parameters, context: Array, attend: BlockwiseCache,
                     ctx: Context) -> tuple[Array, Any]:
        T = len(ctx.key_positions())
        rows = np.clip(np.arange(1 - T, T), -self.reach, self.reach) + self.reach        # of each distance
        spread, lookup = embedding_forward(params[self.R.name], rows)                    # (2 T - 1, d_k)
        starts, weights = T - 1 - ctx.query_positions(), attend.dropped
        by_distance = relative_shift_backward(weights, ((*weights.shape[:3], 2 * T - 1), starts, T))
        taken = ctx.hook("distance_values", by_distance @ spread)                        # (B, A, m, d_k)
        return context + taken, (by_distance, spread, lookup, starts, T)

    def _more_values_backward(self, dcontext: Array, cache: Any, grads: Gradients, ctx: Context) -> Array:
        by_distance, spread, lookup, starts, T = cache
        dtaken = ctx.hook("distance_values", dcontext)
        dspread = np.einsum("bamn,bamd->nd", by_distance, dtaken)                        # taken = by_distance spread
        grads.add(self.R.name, embedding_backward(dspread, lookup))
        return relative_shift_forward(dtaken @ spread.T, starts, T)[0]

    def _to_distance(self, weights: Array) -> Array:
        """One sequence's weights (A, T, T) -> their sums at each distance (A, T, 2 k + 1), for the formula."""
        T = weights.shape[1]
        rows = np.clip(np.arange(T) - np.arange(T)[:, None], -self.reach, self.reach) + self.reach
        return np.stack([(weights * (rows == row)).sum(axis=2) for row in range(2 * self.reach + 1)], axis=2)

    def _from_distance(self, by_distance: Array) -> Array:
        """The way back: (A, T, 2 k + 1) -> (A, T, T)."""
        A, T, _ = by_distance.shape
        rows = np.clip(np.arange(T) - np.arange(T)[:, None], -self.reach, self.reach) + self.reach
        return np.take_along_axis(by_distance, np.broadcast_to(rows, (A, T, T)), axis=2)

    def _context_steps(self) -> Steps:
        taken = Formula("relative values", "to_distance({0}) {R}", ("from_distance(d{y} {R}^T)",),
                        {"R": "sum_heads(to_distance({0})^T d{y})"}, page="positions",
                        why="A token also receives a vector for the distance of each token that it attends to.",
                        functions={"to_distance": self._to_distance, "from_distance": self._from_distance,
                                   "sum_heads": lambda x: x.sum(axis=0)})
        context = Formula("context with distances", "{0} {1} + {2}", ("d{y} {1}^T", "{0}^T d{y}", "d{y}"),
                          page="positions",
                          why="What the attended tokens hand over, together with how far away they are.")
        yield StepSpec("distance_values", "Values of distances", "C_r", taken, ("attention_weights",),
                       (("R", self.R.name),), "attention")
        yield StepSpec("context", "Context: weighted values", "C", context,
                       ("attention_weights", "V", "distance_values"), (), "attention")

    def floats(self, sizes: Sizes) -> int:
        return super().floats(sizes) + 2 * self.num_heads * sizes.rows * sizes.length
