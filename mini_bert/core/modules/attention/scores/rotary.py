"""Rotary positions (RoPE): queries and keys are rotated by angles that grow with their positions.

    angle_(t, i) = t base^(-2 i / d_k)                 for the pair i of features, i < d_k / 2
    (u, v) -> (u cos - v sin, u sin + v cos)           so q_t . k_s depends on t - s alone

The pair i is (i, i + d_k/2), as in Hugging Face's models, or (2 i, 2 i + 1) if `interleaved`. A rotation's transpose
turns back, so the backward is the forward with the angles negated. With `global_every` or `global_layers`, the layers
that see everything (sliding_window.py) have `global_base` instead of `base`.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

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

Waves = npt.NDArray[np.complexfloating[Any]]


def _waves(angles: npt.NDArray[np.float64], dtype: npt.DTypeLike) -> Waves:
    waves: Waves = np.exp(1j * angles).astype(np.result_type(dtype, np.complex64))
    return waves


def _turn_pairs(x: Array, waves: Waves) -> Array:
    """Neighbours (u, v) are the complex number u + i v in memory, and turning it is one multiplication."""
    neighbours = x if x.strides[-1] == x.itemsize else np.ascontiguousarray(x)
    turned: Array = (neighbours.view(waves.dtype) * waves).view(x.dtype)
    return turned


def _turn_halves(x: Array, waves: Waves) -> Array:
    """Three times as slow as neighbours, since the halves must be brought together and parted again."""
    half = waves.shape[-1]
    z = np.empty((*x.shape[:-1], half), waves.dtype)
    z.real, z.imag = x[..., :half], x[..., half:]
    z *= waves
    y = np.empty(x.shape, x.dtype)
    y[..., :half], y[..., half:] = z.real, z.imag
    return y


@register("score_term", "rotary")
class Rotary(Term):
    def __init__(self, config: ModelConfig, layer: int, base: float = 10_000.0, interleaved: bool = False,
                 global_base: float = 0.0, global_every: int = 0, global_layers: str = ""):
        super().__init__(config, layer)
        d_k = config.head_size
        base = global_base if is_global(layer, global_every, global_layers) else base
        if isinstance(base, bool) or not isinstance(base, int | float) or base <= 0:
            raise ConfigError(f"rotary: base must be a number above zero, not {base}.")
        if d_k % 2:
            raise ConfigError(f"rotary needs an even number of features per head, not {d_k}.")
        self.frequencies = base ** (-np.arange(0, d_k, 2) / d_k)                 # (d_k / 2,)
        self.interleaved = interleaved
        self.turn = _turn_pairs if interleaved else _turn_halves

    def _waves(self, positions: IntArray, like: Array, ctx: Context) -> Waves:
        """exp(i angle), (1 or B, 1, positions, d_k / 2), once for all layers."""
        return ctx.table(("rotary", positions.shape, positions.tobytes(), self.frequencies.tobytes()),
                         lambda: _waves(positions[:, None, :, None] * self.frequencies, like.dtype))

    def rotate(self, params: Parameters, Q: Array, K: Array, ctx: Context) -> tuple[Array, Array, Any]:
        of_queries = self._waves(ctx.query_positions(), Q, ctx)
        of_keys = self._waves(ctx.key_positions()[None], K, ctx)
        Q = ctx.hook("turned_Q", self.turn(Q, of_queries))
        return Q, ctx.hook("turned_K", self.turn(K, of_keys)), (of_queries, of_keys)

    def rotate_backward(self, dQ: Array, dK: Array, cache: Any, grads: Gradients, ctx: Context) -> tuple[Array, Array]:
        of_queries, of_keys = cache
        dQ, dK = ctx.hook("turned_Q", dQ), ctx.hook("turned_K", dK)
        return self.turn(dQ, of_queries.conj()), self.turn(dK, of_keys.conj())

    def _turn_sequence(self, x: Array, sign: int = 1) -> Array:
        """One sequence (A, T, d_k), for the formula."""
        return self.turn(x, _waves(sign * np.arange(x.shape[1])[:, None] * self.frequencies, x.dtype))

    def steps(self, Q: str, K: str) -> tuple[Steps, str, str, str | None]:
        turn = Formula("rotary", "turn({0})", ("turnback(d{y})",), page="positions",
                       why="Turns each vector by an angle that grows with its position; a product of a query and a key "
                           "then depends on their distance alone.", functions={
            "turn": self._turn_sequence, "turnback": lambda x: self._turn_sequence(x, -1)})
        turned = (StepSpec("turned_Q", "Queries, turned by position", "Q_r", turn, (Q,), (), "attention"),
                  StepSpec("turned_K", "Keys, turned by position", "K_r", turn, (K,), (), "attention"))
        return iter(turned), "turned_Q", "turned_K", None

    def floats(self, sizes: Sizes) -> int:
        return self.config.hidden_size * (sizes.tokens + sizes.rows)
