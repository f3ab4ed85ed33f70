"""Multi-head self-attention of a layer: project to Q, K, V, attend in each head, join, project back.

    MHA(x) = concat_a(softmax(Q_a K_a^T / sqrt(d_k)) V_a) W_O,     Q = x W_Q,  K = x W_K,  V = x W_V

Only the selected rows ask (Q); every real token answers (K, V).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...arrays import Array, BoolArray
from ...cache import Deferred
from ...config import ModelConfig
from ...hooks import Watch, unwatched
from ...ops.attention import attention_backward, attention_forward
from ...params import Gradients, Parameters, ParamSpec
from ...selection import Selection
from ..linear import Linear


class SelfAttention:
    def __init__(self, config: ModelConfig, layer: int, residual_std: float):
        H, std = config.hidden_size, config.init_std
        self.num_heads, self.rate = config.num_heads, config.attention_dropout

        def projection(letter: str, std: float) -> Linear:
            bias = f"b_{letter}_{layer}" if config.attention_bias else None
            return Linear(f"W_{letter}_{layer}", bias, H, H, std)

        self.query, self.key, self.value = (projection(letter, std) for letter in "QKV")
        self.output = projection("O", residual_std)

    def layout(self) -> Iterator[ParamSpec]:
        for projection in (self.query, self.key, self.value, self.output):
            yield from projection.layout()

    def _split(self, x: Array) -> Array:
        B, T, H = x.shape
        return x.reshape(B, T, self.num_heads, H // self.num_heads).transpose(0, 2, 1, 3)   # (B, A, T, d_k)

    @staticmethod
    def _join(x: Array) -> Array:
        B, A, T, d_k = x.shape
        return x.transpose(0, 2, 1, 3).reshape(B, T, A * d_k)                                # (B, T, H)

    def forward(self, params: Parameters, x: Array, select: Selection, key_mask: BoolArray | None,
                rng: np.random.Generator | None, watch: Watch = unwatched) -> tuple[Array, dict[str, Any]]:
        """x (B*T, H) -> y (M, H), one row for each selected token."""
        B, T, H = select.B, select.T, x.shape[1]
        x = watch("attention_input", x)
        q, query = self.query.forward(params, select.take(x))                    # (M, H)
        k, key = self.key.forward(params, x)                                     # (B*T, H)
        v, value = self.value.forward(params, x)
        Q = watch("Q", self._split(select.to_grid(q)))                           # (B, A, m, d_k)
        K = watch("K", self._split(k.reshape(B, T, H)))                          # (B, A, T, d_k)
        V = watch("V", self._split(v.reshape(B, T, H)))
        context, attend = attention_forward(Q, K, V, key_mask, self.rate, rng, watch)
        context = watch("context", context)                                      # (B, A, m, d_k)
        joined = select.from_grid(self._join(context))                           # (M, H)
        y, output = self.output.forward(params, joined)
        return watch("attention_output", y), {"Q": Q, "K": K, "V": V, "scores": Deferred(lambda: attend.scores),
                   "attention_weights": attend.weights, "context": context, "_ops": (query, key, value, attend, output)}

    def backward(self, dy: Array, cache: dict[str, Any], grads: Gradients, select: Selection,
                 watch: Watch = unwatched) -> Array:
        """dy (M, H) -> dx (B*T, H)."""
        query, key, value, attend, output = cache["_ops"]
        BT = select.B * select.T
        dy = watch("attention_output", dy)
        djoined = self.output.backward(dy, output, grads)                        # y = joined W_O
        dcontext = watch("context", self._split(select.to_grid(djoined)))        # joined = from_grid(join(context))
        dQ, dK, dV = attention_backward(dcontext, attend, watch)
        dQ, dK, dV = watch("Q", dQ), watch("K", dK), watch("V", dV)
        dq = select.from_grid(self._join(dQ))                                    # Q = split(to_grid(q))
        dx = self.key.backward(self._join(dK).reshape(BT, -1), key, grads)       # k = x W_K
        dx += self.value.backward(self._join(dV).reshape(BT, -1), value, grads)  # v = x W_V
        dx = select.take_backward(self.query.backward(dq, query, grads), dx)     # q = take(x) W_Q
        return watch("attention_input", dx)
