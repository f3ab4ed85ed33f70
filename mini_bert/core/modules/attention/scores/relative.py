"""The relative attention of Transformer-XL and XLNet: a distance has a vector of sines and cosines, and a query asks
of keys and of distances with a bias each.

    S_ij = ((q_i + u) . k_j + (q_i + v) . r_(i-j)) / sqrt(d_k)
    r_n  = R_n W_R             R_n = [sin(n f); cos(n f)],  f_h = 10000^(-2 h / H)             u, v (A, d_k)

    dv = sum over queries of dq''         dR W_R = shift'(dS)^T (q + v)        with q'' = q + v, and du alike

`shared` has one u and one v for all layers; `clamp=n` treats distances beyond n as n. Derivation:
docs/math/transformer_xl.md
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
from ....ops.relative.relative_scores import relative_scores_backward, relative_scores_forward
from ....ops.relative.relative_shift import relative_shift_backward, relative_shift_forward
from ....params import Gradients, Parameters, ParamSpec
from ....registry import register
from ...linear import Linear
from .term import Term


def waves(distances: IntArray, width: int) -> Array:
    """R: sines and then cosines of each distance (D,) at `width` / 2 frequencies -> (D, width)."""
    angles = distances[:, None] * 10_000.0 ** (-np.arange(0, width, 2) / width)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


@register("score_term", "relative")
class Relative(Term):
    def __init__(self, config: ModelConfig, layer: int, shared: bool = False, clamp: int = 0):
        super().__init__(config, layer)
        if isinstance(clamp, bool) or not isinstance(clamp, int) or clamp < 0:
            raise ConfigError(f"relative: clamp must be 0 or the largest distance that is told apart, not {clamp}.")
        if config.hidden_size % 2:
            raise ConfigError(f"relative needs an even hidden_size, for sines and cosines, not {config.hidden_size}.")
        H, heads = config.hidden_size, (config.num_heads, config.head_size)
        self.clamp, self.scale, self.owner = clamp, 1 / sqrt(config.head_size), not shared or layer == 0
        suffix, of = ("", None) if shared else (f"_{layer}", layer)
        self.u, self.v = (ParamSpec(name + suffix, heads, config.init_std, component="attention", layer=of,
                                    axes=("heads",), symbol=letter)
                          for name, letter in (("content_bias", "u"), ("distance_bias", "v")))
        self.project = Linear(f"W_R_{layer}", None, H, H, config.init_std, component="attention", layer=layer,
                              symbol="W_R")

    def layout(self) -> Layout:
        yield from self.project.layout()
        if self.owner:                                           # of shared biases the first layer's term is the owner
            yield from (self.u, self.v)

    def _distances(self, queries: int, keys: int) -> IntArray:
        """From the largest, of the last query and the first key, to the smallest, of the first and the last."""
        distances = np.arange(keys - 1, -queries, -1)
        return np.clip(distances, -self.clamp, self.clamp) if self.clamp else distances

    def rotate(self, params: Parameters, Q: Array, K: Array, ctx: Context) -> tuple[Array, Array, Any]:
        return ctx.hook("content_Q", Q + params[self.u.name][:, None]), K, None

    def rotate_backward(self, dQ: Array, dK: Array, cache: Any, grads: Gradients, ctx: Context) -> tuple[Array, Array]:
        dQ = ctx.hook("content_Q", dQ)
        grads.add(self.u.name, dQ.sum(axis=(0, 2)))              # Q + u
        return dQ, dK

    def bias(self, params: Parameters, Q: Array, K: Array, ctx: Context) -> tuple[Array, Any]:
        T, keys = ctx.select.T, K.shape[2]
        R = ctx.table(("relative", self.clamp, T, keys),
                      lambda: waves(self._distances(T, keys), self.config.hidden_size).astype(Q.dtype))      # (D, H)
        rows, project = self.project.forward(params, R)
        r = ctx.hook("distance_keys", self._heads(rows)[None])[0]                                      # (A, D, d_k)
        asked = Q + params[self.v.name][:, None]                                                       # (B, A, m, d_k)
        asked *= self.scale
        scores, scored = relative_scores_forward(asked, r, keys - 1 - ctx.query_positions(), keys)
        return ctx.hook("distance_scores", scores), (scored, project)

    def bias_backward(self, dscores: Array, cache: Any, grads: Gradients, ctx: Context) -> BiasGradients:
        scored, project = cache
        dasked, dr = relative_scores_backward(ctx.hook("distance_scores", dscores), scored)
        drows = ctx.hook("distance_keys", dr[None])[0].swapaxes(0, 1)                                  # (D, A, d_k)
        self.project.backward(np.ascontiguousarray(drows).reshape(len(drows), -1), project, grads)     # rows = R W_R
        dasked *= self.scale                                     # asked = (Q + v) / sqrt(d_k)
        grads.add(self.v.name, dasked.sum(axis=(0, 2)))
        return dasked, None

    def _heads(self, rows: Array) -> Array:
        return rows.reshape(len(rows), self.config.num_heads, -1).swapaxes(0, 1)                       # (A, D, d_k)

    def steps(self, Q: str, K: str) -> tuple[Steps, str, str, str | None]:
        def at(T: int) -> IntArray:
            return np.arange(T - 1, -1, -1)[None]

        def shift(x: Array) -> Array:                            # of one text: (A, T, 2 T - 1) -> (A, T, T)
            y, _ = relative_shift_forward(x[None], at(x.shape[1]), x.shape[1])
            return np.asarray(y[0])

        def unshift(dy: Array) -> Array:
            A, T, _ = dy.shape
            return np.asarray(relative_shift_backward(dy[None], ((1, A, T, 2 * T - 1), at(T), T))[0])

        def wave(t: Array) -> Array:
            return waves(self._distances(len(t), len(t)), self.config.hidden_size)

        own = {"shift": shift, "unshift": unshift, "waves": wave, "rows": lambda x: x[:, None],
               "sum_q": lambda x: x.sum(axis=-2)}
        distances = Formula("distances", "split(waves(t) {W})", (), {"W": "waves(t)^T join(d{y})"}, functions=own,
                            page="transformer_xl",
                            why="A key for each distance, made of sines and cosines of the distance.")
        scores = Formula("relative scores", "shift(({0} + rows({v})) {1}^T) / sqrt(d_k)",
                         ("unshift(d{y}) {1} / sqrt(d_k)", "unshift(d{y})^T ({0} + rows({v})) / sqrt(d_k)"),
                         {"v": "sum_q(unshift(d{y}) {1}) / sqrt(d_k)"}, functions=own, page="transformer_xl",
                         why="How well each query fits the distance of each key, whatever stands there.")
        biased = Formula("content bias", "{0} + rows({u})", ("d{y}",), {"u": "sum_q(d{y})"}, functions=own,
                         page="transformer_xl",
                         why="A vector added to every query: some contents are worth attention whoever asks.")
        made = (StepSpec("distance_keys", "Keys of distances", "R", distances, (), (("W", self.project.W),),
                         "attention"),
                StepSpec("distance_scores", "Scores of distances", "S_R", scores, (Q, "distance_keys"),
                         (("v", self.v.name),), "attention", ("key",)),
                StepSpec("content_Q", "Queries of content", "Q_u", biased, (Q,), (("u", self.u.name),), "attention"))
        return iter(made), "content_Q", K, "distance_scores"

    def floats(self, sizes: Sizes) -> int:
        return 2 * self.config.hidden_size * sizes.rows          # Q + u, and (Q + v) / sqrt(d_k)
