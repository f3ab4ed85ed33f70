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
Turns = tuple[Array, Array]               # cos and sin as they meet the halves


class _Pairs:
    """Neighbours (u, v) are the complex number u + i v in memory, and turning it is one multiplication."""

    def table(self, angles: npt.NDArray[np.float64], heads: int, dtype: npt.DTypeLike) -> Waves:
        """exp(i angle), (1 or B, 1, positions, d_k / 2), for angles (1 or B, positions, d_k / 2)."""
        waves: Waves = np.exp(1j * angles[:, None]).astype(np.result_type(dtype, np.complex64))
        return waves

    def turn(self, x: Array, waves: Any, *, back: bool = False, overwrite: bool = False) -> Array:
        neighbours = x if x.strides[-1] == x.itemsize else np.ascontiguousarray(x)
        turned: Array = (neighbours.view(waves.dtype) * (waves.conj() if back else waves)).view(x.dtype)
        return turned


class _Halves:
    """x cos + (x with its halves exchanged) sin, over whole rows of heads, so that NumPy's loops are long.

    The table repeats the angles for each head. As complex numbers, whose parts must be brought together and parted
    again, a turn takes 1.7 times as long, and in place 2.4 times (153, 90 and 62 us for 512 rows of 192).
    """

    def table(self, angles: npt.NDArray[np.float64], heads: int, dtype: npt.DTypeLike) -> Turns:
        """(1 or B, positions, H) each."""
        cos, sin = np.cos(angles), np.sin(angles)
        return (np.tile(np.concatenate([cos, cos], axis=-1), heads).astype(dtype),
                np.tile(np.concatenate([-sin, sin], axis=-1), heads).astype(dtype))

    def turn(self, x: Array, table: Any, *, back: bool = False, overwrite: bool = False) -> Array:
        """x (B, A, T, d_k) -> the same in memory (B, T, A, d_k): that of x with `overwrite`, if it is so arranged."""
        cos, sin = table
        (B, A, T, d_k), rows = x.shape, x.transpose(0, 2, 1, 3)
        joined = rows.reshape(B, T, A * d_k)
        across = _exchanged(joined.reshape(-1, 2, d_k // 2)).reshape(joined.shape)
        across *= sin
        turned: Array = np.multiply(joined, cos, out=joined if overwrite else None)
        if back:
            turned -= across
        else:
            turned += across
        return turned.reshape(B, T, A, d_k).transpose(0, 2, 1, 3)


def _exchanged(halves: Array) -> Array:
    """(N, 2, n) with each half in the place of the other; copied two float32 at a time if n is even."""
    wide = np.complex64 if halves.dtype == np.float32 and halves.shape[2] % 2 == 0 else halves.dtype
    exchanged = np.empty_like(halves)
    exchanged.view(wide)[...] = halves.view(wide)[:, ::-1]
    return exchanged


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
        self.form: _Pairs | _Halves = _Pairs() if interleaved else _Halves()

    def _table(self, positions: IntArray, like: Array, ctx: Context) -> Any:
        """What turns heads at `positions` (1 or B, positions), once for all layers."""
        return ctx.table(("rotary", positions.shape, positions.tobytes(), self.frequencies.tobytes()),
                         lambda: self.form.table(positions[:, :, None] * self.frequencies, like.shape[1], like.dtype))

    def _tables(self, Q: Array, K: Array, ctx: Context) -> tuple[Any, Any]:
        return self._table(ctx.query_positions(), Q, ctx), self._table(ctx.key_positions()[None], K, ctx)

    def rotate(self, params: Parameters, Q: Array, K: Array, ctx: Context) -> tuple[Array, Array, None]:
        of_queries, of_keys = self._tables(Q, K, ctx)
        Q = ctx.hook("turned_Q", self.form.turn(Q, of_queries))
        return Q, ctx.hook("turned_K", self.form.turn(K, of_keys)), None

    def rotate_backward(self, dQ: Array, dK: Array, cache: None, grads: Gradients, ctx: Context) -> tuple[Array, Array]:
        of_queries, of_keys = self._tables(dQ, dK, ctx)
        dQ, dK = ctx.hook("turned_Q", dQ), ctx.hook("turned_K", dK)
        return (self.form.turn(dQ, of_queries, back=True, overwrite=True),
                self.form.turn(dK, of_keys, back=True, overwrite=True))

    def _turn_sequence(self, x: Array, back: bool = False) -> Array:
        """One sequence (A, T, d_k), for the formula."""
        table = self.form.table(np.arange(x.shape[1])[None, :, None] * self.frequencies, len(x), x.dtype)
        turned: Array = self.form.turn(x[None], table, back=back)[0]
        return turned

    def steps(self, Q: str, K: str) -> tuple[Steps, str, str, str | None]:
        turn = Formula("rotary", "turn({0})", ("turnback(d{y})",), page="positions",
                       why="Turns each vector by an angle that grows with its position; a product of a query and a key "
                           "then depends on their distance alone.", functions={
            "turn": self._turn_sequence, "turnback": lambda x: self._turn_sequence(x, back=True)})
        turned = (StepSpec("turned_Q", "Queries, turned by position", "Q_r", turn, (Q,), (), "attention"),
                  StepSpec("turned_K", "Keys, turned by position", "K_r", turn, (K,), (), "attention"))
        return iter(turned), "turned_Q", "turned_K", None

    def floats(self, sizes: Sizes) -> int:
        return self.config.hidden_size * (sizes.tokens + sizes.rows)
