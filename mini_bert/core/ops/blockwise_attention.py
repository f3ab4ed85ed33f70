"""Attention in blocks of queries, each with the keys from the first to the last that one of its queries may see.

    C_q = softmax(Q_q K_k^T / sqrt(d_k) + bias_qk) V_k          for each block of queries q, with its keys k

    dQ_q from block q        dK_k, dV_k: the sum over all blocks that read k

What is left out has P = 0, so nothing is changed but the order of sums. It is for windows and for causal attention:
with 128 tokens and a window of 16 on each side, blocks compute 44 % of the scores, in half the time, and keep as many
weights; a step of mini-modern takes 0.98 of its time. Where they would save little, there is one block: attention as it
is.

Long sequences always come in blocks, and no block keeps its weights: the backward computes them again, so memory grows
with T and not with T^2. Derivation: docs/math/blockwise_attention.md
"""

from collections.abc import Callable
from copy import deepcopy
from typing import NamedTuple

import numpy as np

from ..arrays import Array, BoolArray
from ..formulas import Formula
from ..gradcheck import Check
from ..hooks import Hook, no_hook
from .attention import FORMULA as ATTENTION
from .attention import AttentionCache, attention_backward, attention_forward, attention_value, heads_last

_BLOCK = 32               # queries
_WORTHWHILE = 0.7         # share of all scores that blocks may compute at most
_LONG = 1024              # queries and keys; of more, weights are not kept


class Block(NamedTuple):
    queries: slice
    keys: slice

    def of(self, scores: Array) -> Array:
        """Its part of scores, or of what has their shape, or is broadcast to it."""
        return scores[:, :, self.queries if scores.shape[2] > 1 else slice(None),
                      self.keys if scores.shape[3] > 1 else slice(None)]


class Again(NamedTuple):
    """What a block needs to be computed once more: the arguments of attention_forward, with the generator as it was."""

    Q: Array
    K: Array
    V: Array
    key_mask: BoolArray | None
    bias: Array | None
    allowed: BoolArray | None
    rate: float
    rng: np.random.Generator | None

    def forward(self) -> tuple[Array, AttentionCache]:
        Q, K, V, key_mask, bias, allowed, rate, rng = self
        return attention_forward(Q, K, V, key_mask, rate, deepcopy(rng), bias=bias, allowed=allowed)


def _opened(cache: AttentionCache | Again) -> AttentionCache:
    return cache.forward()[1] if isinstance(cache, Again) else cache


class BlockwiseCache(NamedTuple):
    blocks: list[tuple[Block, AttentionCache | Again]]
    shape: tuple[int, int, int, int]              # of the scores

    @property
    def weights(self) -> Array:
        """P of all queries and keys."""
        return self._joined(lambda cache: cache.weights, 0.0)

    @property
    def dropped(self) -> Array:
        return self._joined(lambda cache: cache.dropped, 0.0)

    @property
    def scores(self) -> Array:
        return self._joined(lambda cache: cache.scores, -np.inf)

    def _joined(self, part: Callable[[AttentionCache], Array], elsewhere: float) -> Array:
        parts = [(block, part(_opened(cache))) for block, cache in self.blocks]
        if len(parts) == 1:
            return parts[0][1]
        whole = np.full(self.shape, elsewhere, parts[0][1].dtype)
        for block, values in parts:
            block.of(whole)[...] = values
        return whole


def keeps_weights(Tq: int, T: int, longest: int = _LONG) -> bool:
    """Are the weights of this number of queries and keys kept for the backward?"""
    return Tq * T <= longest * longest


def _blocks(shape: tuple[int, int, int, int], allowed: BoolArray | None, size: int, kept: bool) -> list[Block]:
    _, _, Tq, T = shape
    whole = [Block(slice(0, Tq), slice(0, T))]
    if Tq <= size or (allowed is None and kept):
        return whole
    starts = np.arange(0, Tq, size)
    if allowed is None:
        return [Block(slice(start, min(start + size, Tq)), slice(0, T)) for start in starts.tolist()]
    seen = np.logical_or.reduceat(allowed.any(axis=0), starts, axis=0)           # (blocks, T)
    first, end = seen.argmax(axis=1), T - seen[:, ::-1].argmax(axis=1)
    blocks = [Block(slice(start, min(start + size, Tq)), slice(a, b))
              for start, a, b in zip(starts.tolist(), first.tolist(), end.tolist(), strict=True)]
    computed = sum((block.queries.stop - block.queries.start) * (block.keys.stop - block.keys.start)
                   for block in blocks)
    return blocks if computed <= _WORTHWHILE * Tq * T or not kept else whole


def blockwise_attention_forward(Q: Array, K: Array, V: Array, key_mask: BoolArray | None = None, rate: float = 0.0,
                                rng: np.random.Generator | None = None, hook: Hook = no_hook, *,
                                bias: Array | None = None, allowed: BoolArray | None = None,
                                size: int = _BLOCK, longest: int = _LONG) -> tuple[Array, BlockwiseCache]:
    """As attention_forward. A hook sees all scores and weights, so for a hook there is one block."""
    shape = (*Q.shape[:3], K.shape[2])
    kept = keeps_weights(Q.shape[2], K.shape[2], longest)
    blocks = _blocks(shape, allowed, size, kept)
    if len(blocks) == 1 or hook is not no_hook:
        context, cache = attention_forward(Q, K, V, key_mask, rate, rng, hook, bias=bias, allowed=allowed)
        return context, BlockwiseCache([(Block(slice(0, shape[2]), slice(0, shape[3])), cache)], shape)
    context, caches = heads_last(Q.shape, Q), list[tuple[Block, AttentionCache | Again]]()
    for block in blocks:
        q, k = block
        again = Again(Q[:, :, q], K[:, :, k], V[:, :, k], None if key_mask is None else key_mask[:, k],
                      None if bias is None else block.of(bias), None if allowed is None else allowed[:, q, k], rate,
                      deepcopy(rng))
        context[:, :, q], cache = attention_forward(*again[:4], rate, rng, bias=again.bias, allowed=again.allowed)
        caches.append((block, cache if kept else again))
    return context, BlockwiseCache(caches, shape)


def blockwise_attention_value(Q: Array, K: Array, V: Array, key_mask: BoolArray | None = None, *,
                              bias: Array | None = None, allowed: BoolArray | None = None) -> Array:
    """As attention_value."""
    context = heads_last(Q.shape, Q)
    for block in _blocks((*Q.shape[:3], K.shape[2]), allowed, _BLOCK, keeps_weights(Q.shape[2], K.shape[2])):
        q, k = block
        attention_value(Q[:, :, q], K[:, :, k], V[:, :, k], None if key_mask is None else key_mask[:, k],
                        bias=None if bias is None else block.of(bias),
                        allowed=None if allowed is None else allowed[:, q, k], out=context[:, :, q])
    return context


def blockwise_attention_backward(dcontext: Array, cache: BlockwiseCache, hook: Hook = no_hook, *,
                                 dweights: Array | None = None) -> tuple[Array, ...]:
    """As attention_backward: dQ, dK, dV, and dbias if there was a bias."""
    _, first = cache.blocks[0]
    if len(cache.blocks) == 1:
        return attention_backward(dcontext, _opened(first), hook, dweights=dweights)
    B, A, Tq, T = cache.shape
    d_k, bias = dcontext.shape[3], first.bias
    dQ, dK, dV = (heads_last((B, A, length, d_k), dcontext) for length in (Tq, T, T))
    dK.fill(0)
    dV.fill(0)
    dbias = () if bias is None else (np.zeros(cache.shape, bias.dtype),)
    for block, attend in cache.blocks:
        q, k = block
        dQ[:, :, q], dK_part, dV_part, *dbias_part = attention_backward(
            dcontext[:, :, q], _opened(attend), dweights=None if dweights is None else block.of(dweights))
        dK[:, :, k] += dK_part                         # a key is read by several blocks
        dV[:, :, k] += dV_part
        for whole, part in zip(dbias, dbias_part, strict=True):
            block.of(whole)[...] = part
    return dQ, dK, dV, *dbias


FORMULA = Formula("attention in blocks", ATTENTION.forward)
_NEAR = np.abs(np.arange(5) - np.arange(5)[:, None])[None] <= 1
_CAUSAL = np.tril(np.ones((1, 6, 6), bool))
_MASK = np.array([[True, True, True, False, False], [True, False, False, False, False]])
CHECKS = [
    Check("a window", lambda rng: list(rng.standard_normal((3, 2, 2, 5, 3))), key_mask=_MASK, allowed=_NEAR, size=1),
    Check("causal, with a bias", lambda rng: [*rng.standard_normal((3, 1, 2, 6, 3)), rng.standard_normal((1, 2, 6, 6))],
          names=("Q", "K", "V", "bias"), allowed=_CAUSAL, size=2),
    Check("dropout", lambda rng: list(rng.standard_normal((3, 1, 2, 5, 3))), allowed=_NEAR, size=1, rate=0.3, rng=9),
    Check("weights computed again",
          lambda rng: [*rng.standard_normal((3, 2, 2, 5, 3)), rng.standard_normal((2, 2, 5, 5))],
          names=("Q", "K", "V", "bias"), key_mask=_MASK, size=2, longest=1, rate=0.3, rng=9),
    Check("one block", lambda rng: list(rng.standard_normal((3, 2, 1, 3, 2)))),
]
