"""Attention: queries of the rows that ask, keys and values of those that answer, and the score terms in their order."""

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np

from ...core.modules.attention.gated import GatedAttention, HeadGatedAttention
from ...core.modules.attention.relative_values import RelativeValuesAttention
from ...core.modules.attention.self_attention import SelfAttention
from ...core.ops.gelu import FORMULA as GELU
from .activations import formula_value
from .emitters import emit, emits
from .graph import Graph, Value
from .scores import Scored, clipped_rows

_LOWEST = float(np.finfo(np.float32).min)     # at hidden keys: of -inf alone a softmax makes no numbers


@emits(SelfAttention)
def self_attention(part: SelfAttention, graph: Graph, answers: Value, asks: Value) -> Value:
    return _attend(part, graph, answers, asks)


@emits(GatedAttention)
def gated(part: GatedAttention, graph: Graph, answers: Value, asks: Value) -> Value:
    def gate(joined: Value) -> Value:
        opening = formula_value(GELU, graph, emit(part.gate, graph, asks))
        normed: Value = emit(part.gate_ln, graph, joined * opening)
        return normed

    return _attend(part, graph, answers, asks, gate=gate)


@emits(HeadGatedAttention)
def head_gated(part: HeadGatedAttention, graph: Graph, answers: Value, asks: Value) -> Value:
    def gate(joined: Value) -> Value:
        opening = graph.node("Sigmoid", emit(part.gate, graph, asks)).expand_dims(3)         # (B, T, A, 1)
        by_head = joined.reshape(0, 0, part.num_heads, part.head_size) * opening
        return by_head.reshape(0, 0, part.num_heads * part.head_size)

    return _attend(part, graph, answers, asks, gate=gate)


@emits(RelativeValuesAttention)
def relative_values(part: RelativeValuesAttention, graph: Graph, answers: Value, asks: Value) -> Value:
    def more(weights: Value) -> Value:
        taken = graph.param(part.R.name).take(clipped_rows(graph, part.reach))               # (T, T, d_k)
        return (weights.expand_dims(3) @ taken).squeeze(3)

    return _attend(part, graph, answers, asks, more=more)


def heads(x: Value, count: int, size: int) -> Value:
    """(B, T, H) -> (B, A, T, d_k)"""
    return x.reshape(0, 0, count, size).transpose(0, 2, 1, 3)


def _attend(part: SelfAttention, graph: Graph, answers: Value, asks: Value, *,
            more: Callable[[Value], Value] | None = None, gate: Callable[[Value], Value] | None = None) -> Value:
    def split(projection: Any, x: Value) -> Value:
        return heads(emit(projection, graph, x), part.num_heads, part.head_size)

    Q, K, V = split(part.query, asks), split(part.key, answers), split(part.value, answers)
    biases: list[Value] = []
    allowed: list[Value] = []
    for term in part.terms:
        scored: Scored = emit(term, graph, Q, K)
        Q, K = scored.Q, scored.K
        biases += [] if scored.bias is None else [scored.bias]
        allowed += [] if scored.allowed is None else [scored.allowed]
    scores = (Q @ K.transpose(0, 1, 3, 2)) * (1 / sqrt(part.head_size))              # (B, A, T, T)
    for bias in biases:
        scores = scores + bias
    seen, hidden = _seen(graph, allowed)
    weights = graph.node("Softmax", scores + hidden, axis=-1)
    if allowed:                                                                      # a row that sees nothing
        weights = graph.where(seen, weights, 0.0)
    context = weights @ V                                                            # (B, A, T, d_k)
    context = context if more is None else context + more(weights)
    joined = context.transpose(0, 2, 1, 3).reshape(0, 0, part.num_heads * part.head_size)
    found: Value = emit(part.output, graph, joined if gate is None else gate(joined))
    return found


def _seen(graph: Graph, allowed: list[Value]) -> tuple[Value, Value]:
    """The keys that a query may see, (B, 1, 1 or T, T), and what is added to the scores: 0 there."""
    def compute() -> tuple[Value, Value]:
        seen = graph.mask.expand_dims(1, 2)                                          # (B, 1, 1, T)
        if graph.own:
            seen = seen | graph.node("Equal", graph.distances, np.int64(0))
        for more in allowed:
            seen = seen & more
        return seen, graph.where(seen, 0.0, _LOWEST)

    return graph.table(("seen", *(value.name for value in allowed)), compute)
