"""Disentangled attention (DeBERTa, He et al. 2021): separate scores for contents and relative positions.

    S_ij = (q_i . k_j + q_i . Kr_r + k_j . Qr_r) / sqrt(3 d_k)           r = r(i - j), the row of the distance
    Kr   = R W_KR       Qr = R W_QR + b_QR                               R (2 k, H), one table for all layers

The second term is content to position (`c2p`), the third position to content (`p2c`); the 3 counts the terms. `reach`
and `buckets` decide which row a distance has: see relative_table.py. With `share`, as in DeBERTa v3, R meets the
matrices and biases of the layer's own keys and queries; with `norm` its rows are normalised first.
Derivation: docs/math/deberta.md
"""

from math import sqrt
from typing import Any

import numpy as np

from .....errors import ConfigError
from ....arrays import Array, IntArray
from ....config import ModelConfig
from ....context import Context
from ....formulas import Steps
from ....module import BiasGradients, Layout, Sizes
from ....ops.embedding import embedding_backward, embedding_forward
from ....ops.relative.relative_scores import relative_scores_backward, relative_scores_forward
from ....params import Gradients, Parameters
from ....registry import parse_word, register
from ...linear import Linear
from .disentangled_steps import disentangled_steps
from .relative_table import RelativeTable
from .term import Term


@register("score_term", "disentangled")
class Disentangled(Term):
    """`key_bias=true` gives Kr a bias too, which DeBERTa v2 has where it does not share."""

    def __init__(self, config: ModelConfig, layer: int, reach: int = 64, buckets: int = 0, c2p: bool = True,
                 p2c: bool = True, share: bool = False, norm: bool = False, key_bias: bool = False):
        super().__init__(config, layer)
        if not c2p and not p2c:
            raise ConfigError("disentangled: with neither c2p nor p2c there is nothing to add to the scores.")
        self.table, self.share = RelativeTable(config, layer, reach, buckets, norm), share
        self.shrink = 1 / sqrt(1 + c2p + p2c)             # attention itself divides by sqrt(d_k)
        self.scale = self.shrink / sqrt(config.head_size)
        own_key_bias = parse_word(config.attention).options.get("key_bias", True)

        def projection(letter: str, biased: bool) -> Linear:
            name = letter if share else f"{letter}R"
            return Linear(f"W_{name}_{layer}", f"b_{name}_{layer}" if biased else None, config.hidden_size,
                          config.hidden_size, config.init_std, component="attention", layer=layer, symbol=f"W_{name}")

        of_layer = share and config.attention_bias
        self.key = projection("K", of_layer and own_key_bias if share else key_bias) if c2p else None
        self.query = projection("Q", of_layer if share else True) if p2c else None

    def layout(self) -> Layout:
        yield from self.table.layout()
        for part in (self.key, self.query):
            if part is not None and not self.share:
                yield from part.layout()

    def rotate(self, params: Parameters, Q: Array, K: Array, ctx: Context) -> tuple[Array, Array, Any]:
        return ctx.hook("scaled_Q", Q * self.shrink), K, None

    def rotate_backward(self, dQ: Array, dK: Array, cache: Any, grads: Gradients, ctx: Context) -> tuple[Array, Array]:
        return ctx.hook("scaled_Q", dQ) * self.shrink, dK

    def _spread(self, projected: Array, rows: IntArray) -> tuple[Array, Any]:
        """Projected rows (U, H) -> a scaled one for each distance, in heads (A, D, d_k)."""
        spread, lookup = embedding_forward(projected, rows)
        spread *= self.scale
        return spread.reshape(len(rows), self.config.num_heads, -1).transpose(1, 0, 2), lookup

    def _spread_backward(self, dspread: Array, lookup: Any) -> Array:
        dprojected = embedding_backward(dspread.transpose(1, 0, 2).reshape(dspread.shape[1], -1), lookup)
        dprojected *= self.scale
        return dprojected

    def bias(self, params: Parameters, Q: Array, K: Array, ctx: Context) -> tuple[Array, Any]:
        queries, keys = ctx.query_positions(), ctx.key_positions()
        met, rows = self.table.rows(len(keys), ctx)
        vectors, table = self.table.forward(params, met, ctx)                    # (U, H)
        scores, by_query, by_key = [], None, None
        if self.key is not None:                          # each query reads the distances to all keys
            Kr, linear = self.key.forward(params, vectors)
            spread, lookup = self._spread(ctx.hook("position_keys", Kr), rows)
            c2p, shifted = relative_scores_forward(Q, spread, keys[-1] - queries, len(keys))
            scores.append(ctx.hook("content_to_position", c2p))                  # (B, A, m, T)
            by_query = linear, lookup, shifted
        if self.query is not None:                        # each key reads those to all tokens, in the other order
            Qr, linear = self.query.forward(params, vectors)
            spread, lookup = self._spread(ctx.hook("position_queries", Qr), rows[::-1])
            p2c, shifted = relative_scores_forward(K, spread, (keys[::-1] + ctx.earlier)[None], ctx.select.T)
            p2c, by_key = p2c.swapaxes(2, 3), (linear, lookup, shifted)
            if self._chosen(ctx):
                p2c = np.take_along_axis(p2c, ctx.select.query_positions()[:, None, :, None], axis=2)
            scores.append(ctx.hook("position_to_content", p2c))
        both = len(scores) == 2
        return ctx.hook("relative_scores", scores[0] + scores[1]) if both else scores[0], (table, by_query, by_key)

    def bias_backward(self, dscores: Array, cache: Any, grads: Gradients, ctx: Context) -> BiasGradients:
        table, by_query, by_key = cache
        dQ, dK, sent = None, None, list[Array]()          # the last to the vectors
        if by_query is not None and by_key is not None:
            dscores = ctx.hook("relative_scores", dscores)
        if self.key is not None and by_query is not None:
            linear, lookup, shifted = by_query
            dQ, dspread = relative_scores_backward(ctx.hook("content_to_position", dscores), shifted)
            dKr = ctx.hook("position_keys", self._spread_backward(dspread, lookup))
            sent.append(self.key.backward(dKr, linear, grads))
        if self.query is not None and by_key is not None:
            linear, lookup, shifted = by_key
            dp2c = ctx.hook("position_to_content", dscores)
            if self._chosen(ctx):                         # to the places of the queries; no other token asks
                places = np.arange(ctx.select.T)[:, None] == ctx.select.query_positions()[:, None]
                dp2c = places[:, None].astype(dp2c.dtype) @ dp2c
            dK, dspread = relative_scores_backward(dp2c.swapaxes(2, 3), shifted)
            dQr = ctx.hook("position_queries", self._spread_backward(dspread, lookup))
            sent.append(self.query.backward(dQr, linear, grads))
        self.table.backward(sent[0] if len(sent) == 1 else sent[0] + sent[1], table, grads, ctx)
        return dQ, dK

    @staticmethod
    def _chosen(ctx: Context) -> bool:
        """Are the queries some of the tokens only?"""
        return ctx.select.query_positions().shape != (1, ctx.select.T)

    def steps(self, Q: str, K: str) -> tuple[Steps, str, str, str | None]:
        steps, bias = disentangled_steps(self, Q, K)
        return iter(steps), "scaled_Q", K, bias

    def floats(self, sizes: Sizes) -> int:
        """The scaled queries, and for each distance its vector, its key and its query, and what the norm keeps."""
        return self.config.hidden_size * (sizes.rows + (3 + (self.table.ln is not None)) * (2 * sizes.length - 1))
