"""Segment recurrence (Transformer-XL): a text is read part by part, and attention also reads the previous part.

    K, V = [memory; x] W_K, [memory; x] W_V          Q = x W_Q            for each layer

A layer's memory is the input rows of its attention for earlier tokens; no gradient flows back into them.
With one of length n in each of L layers, the last hidden state depends on up to L n tokens before its own part:

    memory = None
    for part in parts:                                # ids (B, T) each
        hidden, cache = model.encode(part, memory=memory)
        memory = memory_after(cache, length=64)
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from .arrays import Array, IntArray
from .cache import Cache

KEPT = "_attended"            # in the cache of a layer: the rows that its attention was given


@dataclass(frozen=True, eq=False)
class SegmentMemory:
    """`layers[i]` (B, length, H) is what the attention of layer i was given for earlier tokens."""

    layers: Sequence[Array]
    layer: int = 0

    @property
    def length(self) -> int:
        return int(self.layers[0].shape[1])

    def in_layer(self, layer: int) -> "SegmentMemory":
        if layer >= len(self.layers):
            raise InputError(f"This memory is of a model with {len(self.layers)} layers; there is no layer {layer}.")
        return SegmentMemory(self.layers, layer)

    def rows(self, x: Array) -> Array:
        """x (B, T, H) -> (B, length + T, H)."""
        earlier = self.layers[self.layer]
        if (len(earlier), earlier.shape[2]) != (len(x), x.shape[2]):
            raise InputError(f"This memory is of {len(earlier)} sequences with {earlier.shape[2]} features, the batch "
                             f"of {len(x)} with {x.shape[2]}.")
        return np.concatenate([earlier.astype(x.dtype, copy=False), x], axis=1)

    def of(self, sequences: IntArray) -> "SegmentMemory":
        """That of the sequences with these numbers."""
        return SegmentMemory([rows[sequences] for rows in self.layers], self.layer)

    def keys_values(self, K: Array, V: Array) -> tuple[Array, Array]:
        return K, V


def memory_after(cache: Cache, length: int) -> SegmentMemory | None:
    """What to remember of a pass and of its own memory: the last `length` tokens; None for a length of 0.

    A sequence that has padding is at its end: what is remembered of it must not be read by another part of the text.
    """
    if length < 0:
        raise InputError(f"A memory has a length of 0 or more tokens, not {length}.")
    ctx = cache.ctx
    if not cache.layers or any(KEPT not in layer for layer in cache.layers):
        raise InputError("This model's stack keeps nothing to remember; the stack recurrent does.")
    if ctx.key_mask is not None and (ctx.key_mask[:, 1:] & ~ctx.key_mask[:, :-1]).any():
        raise InputError("A part with padding before its tokens cannot be remembered: the padding would be read.")
    if not length:
        return None
    B, T = ctx.select.B, ctx.select.T
    kept = [layer[KEPT].reshape(B, T, -1) for layer in cache.layers]
    if ctx.memory is not None:
        kept = [ctx.memory.in_layer(depth).rows(x) for depth, x in enumerate(kept)]
    return SegmentMemory([x[:, -length:].copy() for x in kept])
