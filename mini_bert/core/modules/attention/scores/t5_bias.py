"""T5's relative bias: a learned number for each head and each bucket of distances.

    bias_aij = table[bucket(j - i), a]             table (buckets, A), learned once and used by every layer

Half of the buckets are for keys before the query, half for those behind it; in each half the nearer half of the buckets
are single distances, and the others grow logarithmically up to `farthest`, beyond which all distances share the last.

    dtable_ra = sum over the layers and over all i, j in bucket r of dS_aij
"""

from math import log
from typing import Any

import numpy as np

from .....errors import ConfigError
from ....arrays import Array, IntArray
from ....config import ModelConfig
from ....context import Context
from ....formulas import Formula, Steps, StepSpec
from ....module import BiasGradients, Layout
from ....params import Gradients, Parameters, ParamSpec
from ....registry import register
from .term import Term


def bucket_of(distance: IntArray, buckets: int, farthest: int) -> IntArray:
    """The bucket of j - i."""
    half = buckets // 2
    exact = half // 2
    far = np.maximum(np.abs(distance), 1)
    grown = exact + (np.log(far / exact) / log(farthest / exact) * (half - exact)).astype(np.int64)
    within: IntArray = np.where(np.abs(distance) < exact, np.abs(distance), np.minimum(grown, half - 1))
    return within + half * (distance > 0)


@register("score_term", "t5_bias")
class T5Bias(Term):
    def __init__(self, config: ModelConfig, layer: int, buckets: int = 32, farthest: int = 128):
        super().__init__(config, layer)
        if not isinstance(buckets, int) or not isinstance(farthest, int) or buckets < 4 or buckets % 4 \
                or farthest <= buckets // 4:
            raise ConfigError("t5_bias: buckets must be a multiple of 4, and farthest above a quarter of it, not "
                              f"buckets={buckets}, farthest={farthest}.")
        self.buckets, self.farthest = buckets, farthest
        self.table = ParamSpec("t5_bias", (buckets, config.num_heads), config.init_std, component="attention",
                               axes=("distances",), symbol="R")

    def layout(self) -> Layout:
        if self.layer == 0:                              # the others use it by its name
            yield self.table

    def _rows(self, ctx: Context) -> IntArray:
        """The bucket of each query and key, (1 or B, m, T), once for all layers."""
        queries, keys = ctx.query_positions(), ctx.key_positions()
        return ctx.table(("t5_bias", self.buckets, self.farthest, queries.shape, queries.tobytes(), len(keys)),
                         lambda: bucket_of(keys - queries[:, :, None], self.buckets, self.farthest))

    def bias(self, params: Parameters, Q: Array, K: Array, ctx: Context) -> tuple[Array, Any]:
        rows = self._rows(ctx)
        return ctx.hook("distance_bias", params[self.table.name][rows].transpose(0, 3, 1, 2)), rows

    def bias_backward(self, dscores: Array, rows: IntArray, grads: Gradients, ctx: Context) -> BiasGradients:
        if len(rows) == 1:                                                       # all sequences got the same bias
            dscores = dscores.sum(axis=0, keepdims=True)
        dscores = ctx.hook("distance_bias", dscores)                             # (1 or B, A, m, T)
        dtable = np.stack([np.bincount(rows.reshape(-1), dscores[:, a].reshape(-1), self.buckets)
                           for a in range(dscores.shape[1])], axis=1)
        grads.add(self.table.name, dtable.astype(dscores.dtype))
        return None, None

    def steps(self, Q: str, K: str) -> tuple[Steps, str, str, str | None]:
        def rows(T: int) -> IntArray:
            return bucket_of(np.arange(T) - np.arange(T)[:, None], self.buckets, self.farthest)

        def tally(dscores: Array) -> Array:
            return np.stack([np.bincount(rows(dscores.shape[1]).reshape(-1), one.reshape(-1), self.buckets)
                             for one in dscores], axis=1)

        formula = Formula("distance bias", "table({R}, t)", (), {"R": "tally(d{y})"}, page="positions",
                          why="Each head learns how much it likes each distance; far distances share a number.",
                          functions={
            "table": lambda R, t: R[rows(len(t))].transpose(2, 0, 1), "tally": tally})
        step = StepSpec("distance_bias", "Bias of distances", "D", formula, (), (("R", self.table.name),), "attention",
                        ("key",))
        return iter((step,)), Q, K, step.name
