"""A table of vectors for relative distances, which all layers share: the R of disentangled attention.

    r(n) = b(n) + k, clipped to 0 ... 2 k - 1           the row of R (2 k, H) for the distance n = query - key

Without buckets b(n) = n and k = reach. With them k = buckets, and with half = buckets // 2

    b(n) = n                                                                                     |n| <= half
    b(n) = sign(n) (half + ceil((half - 1) ln(|n| / half) / ln((reach - 1) / half)))             beyond

so near distances have rows of their own and far ones share rows, on a logarithmic scale that ends at `reach`.
"""

from typing import Any

import numpy as np

from .....errors import ConfigError
from ....arrays import Array, IntArray
from ....config import ModelConfig
from ....context import Context
from ....formulas import Formula, Steps, StepSpec
from ....module import Layout, Norm
from ....ops.dropout import dropout_backward, dropout_forward
from ....params import Gradients, Parameters, ParamSpec
from ....registry import make


def distance_rows(distances: IntArray, reach: int, buckets: int) -> IntArray:
    """The row of each distance (query - key)."""
    k, placed = buckets or reach, distances
    if buckets:
        half = np.float32(buckets // 2)                    # in float32, as transformers rounds at the ends of buckets
        with np.errstate(all="ignore"):                    # the logarithms of what lies inside are not used
            steps = np.log(np.abs(distances).astype(np.float32) / half) / np.log(np.float32((reach - 1) / float(half)))
            far = np.sign(distances) * (np.ceil(steps * (half - 1)) + half)
        placed = np.where(np.abs(distances) <= half, distances, far)
    rows: IntArray = np.clip(placed + k, 0, 2 * k - 1).astype(np.int64)
    return rows


def rows_met(T: int, reach: int, buckets: int) -> tuple[IntArray, IntArray]:
    """The rows that T tokens can meet, and which of them each distance T-1, ..., -(T-1) has."""
    rows = distance_rows(np.arange(T - 1, -T, -1), reach, buckets)
    met = np.arange(rows.min(), rows.max() + 1)
    return met, rows - met[0]


class RelativeTable:
    """The rows that a text's length can meet, normalised with `norm`, behind dropout. Layer 0 owns the parameters."""

    def __init__(self, config: ModelConfig, layer: int, reach: int, buckets: int, norm: bool):
        for name, value, least in (("reach", reach, 1), ("buckets", buckets, 0)):
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= 1_000_000:
                raise ConfigError(f"disentangled: {name} must be a whole number of at least {least}, not {value}.")
        if buckets == 1:
            raise ConfigError("disentangled: one bucket cannot tell before from after; use 2 or more.")
        if buckets and reach - 1 == buckets // 2:              # the logarithm that is divided by would be 0
            raise ConfigError(f"disentangled: with reach={reach}, buckets={buckets} leave no far distances to share "
                              "them; take another reach.")
        self.layer, self.reach, self.buckets, self.rate = layer, reach, buckets, config.dropout
        self.R = ParamSpec("relative_embeddings", (2 * (buckets or reach), config.hidden_size), config.init_std,
                           component="embeddings", axes=("distances",), symbol="R")
        self.ln: Norm | None = make("norm", config.norm, config, "relative_ln", component="embeddings") \
            if norm else None

    def layout(self) -> Layout:
        if self.layer == 0:
            yield self.R
            if self.ln is not None:
                yield from self.ln.layout()

    def rows(self, T: int, ctx: Context) -> tuple[IntArray, IntArray]:
        """As `rows_met`, once for all layers."""
        return ctx.table(("relative table", self.reach, self.buckets, T),
                         lambda: rows_met(T, self.reach, self.buckets))

    def forward(self, params: Parameters, met: IntArray, ctx: Context) -> tuple[Array, Any]:
        """The rows `met` (U,) -> vectors (U, H)."""
        vectors, ln = ctx.hook("relative_vectors", params[self.R.name][met]), None
        if self.ln is not None:
            vectors, ln = self.ln.forward(params, vectors)
            vectors = ctx.hook("relative_normed", vectors)
        vectors, drop = dropout_forward(vectors, self.rate, ctx.dropout("relative_embeddings", self.rate))
        return vectors, (met, ln, drop)

    def backward(self, dvectors: Array, cache: Any, grads: Gradients, ctx: Context) -> None:
        """dvectors (U, H). All layers that use the table add to its gradient."""
        met, ln, drop = cache
        dvectors = dropout_backward(dvectors, drop)
        if self.ln is not None:
            dvectors = self.ln.backward(ctx.hook("relative_normed", dvectors), ln, grads)
        grads.add_rows(self.R.name, met, ctx.hook("relative_vectors", dvectors))

    def steps(self) -> Steps:
        """The last step is what `forward` gives."""
        lookup = Formula("rows of distances", "{R}[met(t)]", (), {"R": "scatter(d{y}, met(t))"}, page="deberta",
                         why="One learned vector per distance; far distances share one.",
                         functions={"met": lambda t: rows_met(len(t), self.reach, self.buckets)[0]})
        yield StepSpec("relative_vectors", "Vectors of distances", "R_T", lookup, (), (("R", self.R.name),),
                       "attention")
        if self.ln is not None:
            yield self.ln.step("relative_normed", "Vectors of distances, normalised", "R_n", "relative_vectors")
