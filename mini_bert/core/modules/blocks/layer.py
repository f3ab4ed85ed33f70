"""One transformer layer: attention and feed-forward, each with a residual path and a LayerNorm.

    post-LN (BERT's):   x' = LN1(x + MHA(x))       y = LN2(x' + FFN(x'))
    pre-LN:             x' = x + MHA(LN1(x))       y = x' + FFN(LN2(x'))

Both take all tokens of the batch and return the selected ones. In backward a sum sends its gradient
to both terms, so each residual path adds the gradient that bypasses the sub-layer.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...arrays import Array, BoolArray
from ...config import ModelConfig
from ...hooks import Watch, unwatched
from ...ops.dropout import dropout_backward, dropout_forward
from ...params import Gradients, Parameters, ParamSpec
from ...selection import Selection
from ..attention.self_attention import SelfAttention
from ..feedforward.mlp import FeedForward
from ..linear import LayerNorm

# For a place such as "ffn", the generator of its dropout; None where dropout is off.
DropoutSource = Callable[[str], np.random.Generator | None]


class TransformerLayer(ABC):
    """What both layouts share: the parts and their parameters."""

    def __init__(self, config: ModelConfig, layer: int, attention: SelfAttention, feedforward: FeedForward):
        self.attention, self.feedforward, self.rate = attention, feedforward, config.dropout
        self.ln1 = LayerNorm("ln1", config.hidden_size, config.layernorm_eps, layer)
        self.ln2 = LayerNorm("ln2", config.hidden_size, config.layernorm_eps, layer)

    def layout(self) -> Iterator[ParamSpec]:
        for part in (self.attention, self.feedforward, self.ln1, self.ln2):
            yield from part.layout()

    @abstractmethod
    def forward(self, params: Parameters, x: Array, select: Selection, key_mask: BoolArray | None,
                dropout: DropoutSource, watch: Watch = unwatched) -> tuple[Array, dict[str, Any]]:
        """x (B*T, H) -> y (M, H), one row for each selected token."""

    @abstractmethod
    def backward(self, dy: Array, cache: dict[str, Any], grads: Gradients, select: Selection,
                 watch: Watch = unwatched) -> Array:
        """dy (M, H) -> dx (B*T, H)."""


class PostLNLayer(TransformerLayer):
    def forward(self, params: Parameters, x: Array, select: Selection, key_mask: BoolArray | None,
                dropout: DropoutSource, watch: Watch = unwatched) -> tuple[Array, dict[str, Any]]:
        attended, attention = self.attention.forward(params, x, select, key_mask, dropout("attention_weights"), watch)
        total, drop1 = dropout_forward(attended, self.rate, dropout("attention"))
        total += select.take(x)                                                  # (M, H)
        middle, ln1 = self.ln1.forward(params, watch("attention_residual", total))
        middle = watch("middle", middle)
        fed, ffn = self.feedforward.forward(params, middle, watch)
        total, drop2 = dropout_forward(fed, self.rate, dropout("ffn"))
        total += middle
        y, ln2 = self.ln2.forward(params, watch("ffn_residual", total))
        y = watch("hidden", y)
        return y, {"x": x, **attention, "middle": middle, **ffn, "hidden": y,
                   "_parts": (attention, drop1, ln1, ffn, drop2, ln2)}

    def backward(self, dy: Array, cache: dict[str, Any], grads: Gradients, select: Selection,
                 watch: Watch = unwatched) -> Array:
        attention, drop1, ln1, ffn, drop2, ln2 = cache["_parts"]
        dy = watch("hidden", dy)
        dsum = watch("ffn_residual", self.ln2.backward(dy, ln2, grads))          # y = LN2(drop(fed) + middle)
        dmiddle = self.feedforward.backward(dropout_backward(dsum, drop2), ffn, grads, watch)
        dmiddle += dsum
        dmiddle = watch("middle", dmiddle)
        dsum = self.ln1.backward(dmiddle, ln1, grads)                            # middle = LN1(drop(attended) + x)
        dsum = watch("attention_residual", dsum)
        dx = self.attention.backward(dropout_backward(dsum, drop1), attention, grads, select, watch)
        return select.take_backward(dsum, dx)


class PreLNLayer(TransformerLayer):
    def forward(self, params: Parameters, x: Array, select: Selection, key_mask: BoolArray | None,
                dropout: DropoutSource, watch: Watch = unwatched) -> tuple[Array, dict[str, Any]]:
        normed, ln1 = self.ln1.forward(params, x)                                # (B*T, H): all are keys
        attended, attention = self.attention.forward(params, normed, select, key_mask,
                                                     dropout("attention_weights"), watch)
        middle, drop1 = dropout_forward(attended, self.rate, dropout("attention"))
        middle += select.take(x)                                                 # (M, H)
        middle = watch("middle", middle)
        normed, ln2 = self.ln2.forward(params, middle)
        fed, ffn = self.feedforward.forward(params, normed, watch)
        y, drop2 = dropout_forward(fed, self.rate, dropout("ffn"))
        y += middle
        y = watch("hidden", y)
        return y, {"x": x, **attention, "middle": middle, **ffn, "hidden": y,
                   "_parts": (attention, drop1, ln1, ffn, drop2, ln2)}

    def backward(self, dy: Array, cache: dict[str, Any], grads: Gradients, select: Selection,
                 watch: Watch = unwatched) -> Array:
        attention, drop1, ln1, ffn, drop2, ln2 = cache["_parts"]
        dy = watch("hidden", dy)
        dnormed = self.feedforward.backward(dropout_backward(dy, drop2), ffn, grads, watch)   # y = drop(fed) + middle
        dmiddle = self.ln2.backward(dnormed, ln2, grads)                         # normed = LN2(middle)
        dmiddle += dy
        dmiddle = watch("middle", dmiddle)
        dnormed = self.attention.backward(dropout_backward(dmiddle, drop1), attention, grads, select, watch)
        dx = self.ln1.backward(dnormed, ln1, grads)                              # normed = LN1(x)
        return select.take_backward(dmiddle, dx)                                 # middle = drop(attended) + take(x)
