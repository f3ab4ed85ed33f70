"""XLNet's segments: a query asks whether a key is of its own segment, not which segment that is.

    bias_ij = (q_i + s) . e_[segment_i != segment_j] / sqrt(d_k)            s (A, d_k), e (2, A, d_k)

    de_0 = sum over i, j in one segment of dS_ij (q_i + s) / sqrt(d_k)      dq_i = sum_j dS_ij e_[...] / sqrt(d_k) = ds

Where a pass has no segments, all tokens are in one: the bias is the same for all keys of a query, and moves no softmax.
Remembered tokens are of segment 0. Derivation: docs/math/xlnet.md
"""

from math import sqrt
from typing import Any

import numpy as np

from ....arrays import Array, BoolArray
from ....config import ModelConfig
from ....context import Context
from ....formulas import Formula, Steps, StepSpec
from ....module import BiasGradients, Layout, Sizes
from ....params import Gradients, Parameters, ParamSpec
from ....registry import register
from .term import Term


@register("score_term", "segments")
class Segments(Term):
    def __init__(self, config: ModelConfig, layer: int):
        super().__init__(config, layer)
        heads = (config.num_heads, config.head_size)
        self.scale = 1 / sqrt(config.head_size)
        self.s = ParamSpec(f"segment_bias_{layer}", heads, config.init_std, component="attention", layer=layer,
                           axes=("heads",), symbol="s")
        self.e = ParamSpec(f"segment_keys_{layer}", (2, *heads), config.init_std, component="attention", layer=layer,
                           axes=("segments", "heads"), symbol="e")

    def layout(self) -> Layout:
        yield from (self.s, self.e)

    def _others(self, ctx: Context) -> BoolArray | None:
        """(B, m, T), True where a key is of another segment than its query; None if there are no segments."""
        types, select = ctx.types, ctx.select
        if types is None:
            return None

        def compute() -> BoolArray:
            places = np.broadcast_to(select.query_positions(), (select.B, select.m))
            keys = np.concatenate([np.zeros((select.B, ctx.earlier), types.dtype), types], axis=1)
            others: BoolArray = np.take_along_axis(types, places, axis=1)[:, :, None] != keys[:, None, :]
            return others

        return ctx.table(("segments", select.query_positions().tobytes(), ctx.earlier), compute)

    def bias(self, params: Parameters, Q: Array, K: Array, ctx: Context) -> tuple[Array, Any]:
        e, others = params[self.e.name].swapaxes(0, 1), self._others(ctx)        # (A, 2, d_k)
        asked = Q + params[self.s.name][:, None]                                 # (B, A, m, d_k)
        asked *= self.scale
        both = asked @ e.swapaxes(1, 2)                                          # (B, A, m, 2)
        scores = np.broadcast_to(both[..., :1], (*both.shape[:3], K.shape[2])) if others is None \
            else np.where(others[:, None], both[..., 1:], both[..., :1])
        return ctx.hook("segment_scores", scores), (asked, e, others)

    def bias_backward(self, dscores: Array, cache: Any, grads: Gradients, ctx: Context) -> BiasGradients:
        asked, e, others = cache
        dscores = ctx.hook("segment_scores", dscores)
        dboth = np.zeros((*asked.shape[:3], 2), asked.dtype)
        if others is not None:
            dboth[..., 1] = np.einsum("baqk,bqk->baq", dscores, others)          # the keys of other segments
        dboth[..., 0] = dscores.sum(axis=3)
        dboth[..., 0] -= dboth[..., 1]
        grads.add(self.e.name, np.einsum("baqs,baqd->sad", dboth, asked))        # both = asked e^T
        dasked = dboth @ e
        dasked *= self.scale                                                     # asked = (Q + s) / sqrt(d_k)
        grads.add(self.s.name, dasked.sum(axis=(0, 2)))
        return dasked, None

    def steps(self, Q: str, K: str) -> tuple[Steps, str, str, str | None]:
        own = {"rows": lambda x: x[:, None], "own": lambda e: e[0][:, :, None], "sum_q": lambda x: x.sum(axis=-2),
               "first": lambda x: np.stack([x, np.zeros_like(x)])}
        formula = Formula("one segment", "({0} + rows({s})) own({e}) / sqrt(d_k)",
                          ("sum(d{y}) own({e})^T / sqrt(d_k)",),
                          {"s": "sum_q(sum(d{y}) own({e})^T) / sqrt(d_k)",
                           "e": "first(sum_q(sum(d{y}) * ({0} + rows({s}))) / sqrt(d_k))"}, functions=own,
                          page="xlnet", why="A query may prefer keys of its own segment, or of the other one.")
        step = StepSpec("segment_scores", "Scores of segments", "S_s", formula, (Q,),
                        (("s", self.s.name), ("e", self.e.name)), "attention")
        return iter((step,)), Q, K, step.name

    def floats(self, sizes: Sizes) -> int:
        return self.config.hidden_size * sizes.rows              # (Q + s) / sqrt(d_k)
