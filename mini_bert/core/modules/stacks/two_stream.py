"""XLNet's stack: besides its content, a token has a query, which must predict the token without having seen it.

    content  h_i <- layer(h_i;  keys h_j of rank_j <= rank_i)         h starts as the embeddings
    query    g_i <- layer(g_i;  keys h_j of rank_j <  rank_i)         g starts as one learned vector for all

Both streams have the same weights; a query knows by attention's distances where its token is. The ranks, the order of
the factorisation, come with the pass (`ctx.order`), and the result is that of the queries. Without an order there is
the content alone, and all of it is seen: plain encoding. Padding is read by nothing but itself.
"""

from typing import Any, ClassVar

import numpy as np

from ...arrays import Array
from ...config import ModelConfig
from ...context import Context
from ...module import Layout
from ...params import Gradients, Parameters, ParamSpec
from ...registry import register
from ...selection import Streams, TwoStreams
from .recurrent import RecurrentStack


@register("stack", "two_stream")
class TwoStreamStack(RecurrentStack):
    orders: ClassVar[bool] = True

    def __init__(self, config: ModelConfig):
        super().__init__(config)
        self.start = ParamSpec("query_embedding", (config.hidden_size,), config.init_std, component="embeddings",
                               symbol="g_0")

    def layout(self) -> Layout:
        yield self.start
        yield from super().layout()

    def _at(self, ctx: Context, depth: int) -> Context:
        inside = super()._at(ctx, depth).but(own=True)
        if ctx.order is None:
            return inside
        last = depth == len(self.layers) - 1                  # nothing reads the content any more: queries ask alone
        streams = (Streams if last else TwoStreams)(ctx.select.B, ctx.select.T, ctx.select.positions)
        return inside.but(select=streams)

    def forward(self, params: Parameters, x: Array, ctx: Context) -> tuple[Array, list[dict[str, Any]]]:
        """x (B*T, H) -> the last layer's output (M, H): with an order, that of the queries of the selected tokens."""
        if ctx.order is None:
            return super().forward(params, x, ctx)
        queries = np.broadcast_to(params[self.start.name], (ctx.select.M, x.shape[1]))
        return super().forward(params, np.concatenate([x, queries]), ctx)

    def backward(self, dy: Array, caches: list[dict[str, Any]], grads: Gradients, ctx: Context, *,
                 forget: bool = False) -> Array:
        dx = RecurrentStack.backward(self, dy, caches, grads, ctx, forget=forget)
        if ctx.order is None:
            return dx
        tokens = ctx.select.B * ctx.select.T
        grads.add(self.start.name, dx[tokens:].sum(axis=0))                     # all queries start as one vector
        return dx[:tokens]
