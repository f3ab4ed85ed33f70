"""Rotary positions (RoPE): queries and keys are turned by angles that grow with their positions.

    angle_(t, i) = t base^(-2 i / d_k)                 for the pair i of features, i < d_k / 2
    (u, v) -> (u cos - v sin, u sin + v cos)           so q_t . k_s depends on t - s alone

The pair i is (i, i + d_k/2), as in Hugging Face's models, or (2 i, 2 i + 1) if `interleaved`. A rotation's transpose
turns back, so the backward is the forward with the angles negated. With `global_every=n`, layers 0, n, 2 n, ... have
`global_base` instead of `base`, for the wider view of sliding_window(global_every=n).
"""

from typing import Any

import numpy as np

from .....errors import ConfigError
from ....arrays import Array, IntArray
from ....config import ModelConfig
from ....context import Context
from ....formulas import Formula, Steps, StepSpec
from ....module import Sizes
from ....params import Gradients, Parameters
from ....registry import register
from .sliding_window import is_global
from .term import Term


@register("score_term", "rotary")
class Rotary(Term):
    def __init__(self, config: ModelConfig, layer: int, base: float = 10_000.0, interleaved: bool = False,
                 global_base: float = 0.0, global_every: int = 0):
        super().__init__(config, layer)
        d_k = config.head_size
        base = global_base if is_global(layer, global_every) else base
        if isinstance(base, bool) or not isinstance(base, int | float) or base <= 0:
            raise ConfigError(f"rotary: base must be a number above zero, not {base}.")
        if d_k % 2:
            raise ConfigError(f"rotary needs an even number of features per head, not {d_k}.")
        self.frequencies = base ** (-np.arange(0, d_k, 2) / d_k)                 # (d_k / 2,)
        half = d_k // 2
        self.first = slice(0, None, 2) if interleaved else slice(0, half)
        self.second = slice(1, None, 2) if interleaved else slice(half, None)

    def _waves(self, positions: IntArray, like: Array, ctx: Context) -> tuple[Array, Array]:
        """cos and sin of the angles, (1 or B, 1, positions, d_k / 2), once for all layers."""
        def compute() -> tuple[Array, Array]:
            angles = positions[:, None, :, None] * self.frequencies
            return np.cos(angles).astype(like.dtype), np.sin(angles).astype(like.dtype)

        return ctx.table(("rotary", positions.shape, positions.tobytes(), self.frequencies.tobytes()), compute)

    def _turn(self, x: Array, cos: Array, sin: Array) -> Array:
        u, v = x[..., self.first], x[..., self.second]
        y = np.empty(x.shape, x.dtype)
        y[..., self.first] = u * cos - v * sin
        y[..., self.second] = u * sin + v * cos
        return y

    def rotate(self, params: Parameters, Q: Array, K: Array, ctx: Context) -> tuple[Array, Array, Any]:
        of_queries = self._waves(ctx.query_positions(), Q, ctx)
        of_keys = self._waves(ctx.key_positions()[None], K, ctx)
        Q = ctx.hook("turned_Q", self._turn(Q, *of_queries))
        return Q, ctx.hook("turned_K", self._turn(K, *of_keys)), (of_queries, of_keys)

    def rotate_backward(self, dQ: Array, dK: Array, cache: Any, grads: Gradients, ctx: Context) -> tuple[Array, Array]:
        (q_cos, q_sin), (k_cos, k_sin) = cache
        dQ, dK = ctx.hook("turned_Q", dQ), ctx.hook("turned_K", dK)
        return self._turn(dQ, q_cos, -q_sin), self._turn(dK, k_cos, -k_sin)

    def _turn_sequence(self, x: Array, sign: int = 1) -> Array:
        """One sequence (A, T, d_k), for the formula."""
        angles = np.arange(x.shape[1])[:, None] * self.frequencies
        return self._turn(x, np.cos(angles), sign * np.sin(angles))

    def steps(self, Q: str, K: str) -> tuple[Steps, str, str, str | None]:
        turn = Formula("rotary", "turn({0})", ("turnback(d{y})",), functions={
            "turn": self._turn_sequence, "turnback": lambda x: self._turn_sequence(x, -1)})
        turned = (StepSpec("turned_Q", "Queries, turned by position", "Q_r", turn, (Q,), (), "attention"),
                  StepSpec("turned_K", "Keys, turned by position", "K_r", turn, (K,), (), "attention"))
        return iter(turned), "turned_Q", "turned_K", None

    def floats(self, sizes: Sizes) -> int:
        return self.config.hidden_size * (sizes.tokens + sizes.rows)
