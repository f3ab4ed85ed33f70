"""Score terms: what each does to queries and keys, adds to the scores, and lets a query see.

Rows of tables that depend on distances are computed here, by the same functions as in a pass, for every distance up to
the one from which they stay the same; the graph looks them up.
"""

from math import pi, sqrt
from typing import Any, NamedTuple

import numpy as np

from ...core.arrays import IntArray
from ...core.modules.attention.scores.alibi import Alibi
from ...core.modules.attention.scores.causal import Causal
from ...core.modules.attention.scores.causal_rows import CausalRows
from ...core.modules.attention.scores.disentangled import Disentangled
from ...core.modules.attention.scores.relative import Relative
from ...core.modules.attention.scores.relative_keys import RelativeKeys
from ...core.modules.attention.scores.relative_table import distance_rows
from ...core.modules.attention.scores.rotary import Rotary
from ...core.modules.attention.scores.segments import Segments
from ...core.modules.attention.scores.sliding_window import SlidingWindow
from ...core.modules.attention.scores.t5_bias import T5Bias, bucket_of
from .emitters import emit, emits
from .graph import Graph, Value


class Scored(NamedTuple):
    """Q and K as they enter the product, what is added to the scores, and the keys that a query may see."""

    Q: Value
    K: Value
    bias: Value | None = None
    allowed: Value | None = None


def clipped_rows(graph: Graph, reach: int) -> Value:
    """clip(key - query, -reach, reach) + reach, (T, T)."""
    low, high = np.int64(-reach), np.int64(reach)
    rows: Value = graph.table(("clipped", reach), lambda: graph.node("Clip", graph.distances, low, high) + high)
    return rows


def _looked_up(graph: Graph, key: Any, rows: IntArray) -> Value:
    """(T, T): the entry of `rows`, which begin with the smallest distance (key - query) and end with the largest."""
    return graph.table(key, lambda: graph.constant(rows).take(clipped_rows(graph, len(rows) // 2)))


def _by_distance(graph: Graph, products: Value, rows: Value) -> Value:
    """products (B, A, T, D) at the columns `rows` (T, T) -> (B, A, T, T)."""
    def at(axis: int) -> Value:
        return graph.node("Shape", products, start=axis, end=axis + 1)

    shape = graph.concat([at(0), at(1), graph.length, graph.length], 0)
    return graph.node("GatherElements", products, graph.node("Expand", rows, shape), axis=3)


@emits(Causal)
def causal(term: Causal, graph: Graph, Q: Value, K: Value) -> Scored:
    allowed = graph.table("causal", lambda: graph.node("LessOrEqual", graph.distances, np.int64(0)))
    return Scored(Q, K, allowed=allowed)


@emits(CausalRows)
def causal_rows(term: CausalRows, graph: Graph, Q: Value, K: Value) -> Scored:
    return Scored(Q, K)                   # no sequence asks for it


@emits(SlidingWindow)
def sliding_window(term: SlidingWindow, graph: Graph, Q: Value, K: Value) -> Scored:
    if term.everywhere:
        return Scored(Q, K)
    allowed = graph.table(("window", term.reach), lambda: graph.node(
        "LessOrEqual", graph.node("Abs", graph.distances), np.int64(term.reach)))
    return Scored(Q, K, allowed=allowed)


@emits(Alibi)
def alibi(term: Alibi, graph: Graph, Q: Value, K: Value) -> Scored:
    slopes = term.slopes.astype(np.float32)[:, None, None]
    bias = graph.table("alibi", lambda: -(graph.node("Abs", graph.distances).astype(np.float32) * slopes))
    return Scored(Q, K, bias)


@emits(T5Bias)
def t5_bias(term: T5Bias, graph: Graph, Q: Value, K: Value) -> Scored:
    reach = np.arange(-term.farthest, term.farthest + 1)
    rows = _looked_up(graph, ("t5", term.buckets, term.farthest), bucket_of(reach, term.buckets, term.farthest))
    return Scored(Q, K, graph.table("t5_bias", lambda: graph.param(term.table.name).take(rows).transpose(2, 0, 1)))


@emits(RelativeKeys)
def relative_keys(term: RelativeKeys, graph: Graph, Q: Value, K: Value) -> Scored:
    products = Q @ (graph.param(term.R.name).transpose(1, 0) * term.scale)           # (B, A, T, 2 k + 1)
    return Scored(Q, K, _by_distance(graph, products, clipped_rows(graph, term.reach)))


def _angles(graph: Graph, numbers: Value, frequencies: Any) -> Value:
    """numbers (N,) times frequencies (F,) -> (N, F), in float64 until a full turn has been taken away."""
    product = numbers.astype(np.float64).expand_dims(1) * frequencies[None].astype(np.float64)
    return graph.node("Mod", product, np.float64(2 * pi), fmod=1).astype(np.float32)


@emits(Rotary)
def rotary(term: Rotary, graph: Graph, Q: Value, K: Value) -> Scored:
    pairs, half = term.interleaved, len(term.frequencies)

    def compute() -> tuple[Value, Value]:
        angles = _angles(graph, graph.positions, term.frequencies)                   # (T, d_k / 2)
        both = [graph.node(kind, angles) for kind in ("Cos", "Sin")]
        if pairs:
            return both[0].expand_dims(2), both[1].expand_dims(2)                    # (T, d_k / 2, 1)
        return both[0], both[1]

    cos, sin = graph.table(("rotary", pairs, term.frequencies.tobytes()), compute)

    def turned(x: Value) -> Value:
        x = x.reshape(0, 0, 0, half, 2) if pairs else x
        u, v = (x.cut(4, 0, 1), x.cut(4, 1, 2)) if pairs else (x.cut(3, 0, half), x.cut(3, half, 2 * half))
        y = graph.concat([u * cos - v * sin, u * sin + v * cos], -1)
        return y.reshape(0, 0, 0, 2 * half) if pairs else y

    return Scored(turned(Q), turned(K))


@emits(Segments)
def segments(term: Segments, graph: Graph, Q: Value, K: Value) -> Scored:
    e = graph.param(term.e.name).transpose(1, 2, 0)                                  # (A, d_k, 2)
    both = ((Q + graph.param(term.s.name).expand_dims(1)) * term.scale) @ e          # (B, A, T, 2)
    same = graph.table("segments", lambda: graph.node(
        "Equal", graph.types.expand_dims(1, 3), graph.types.expand_dims(1, 2)))      # (B, 1, T, T)
    return Scored(Q, K, graph.where(same, both.cut(3, 0, 1), both.cut(3, 1, 2)))


@emits(Relative)
def relative(term: Relative, graph: Graph, Q: Value, K: Value) -> Scored:
    A, H = term.config.num_heads, term.config.hidden_size

    def waves() -> tuple[Value, Value]:
        largest = graph.length.squeeze(0) - np.int64(1)                              # T-1, ..., -(T-1)
        distances = graph.node("Range", largest, -largest - np.int64(1), np.int64(-1))
        if term.clamp:
            distances = graph.node("Clip", distances, np.int64(-term.clamp), np.int64(term.clamp))
        angles = _angles(graph, distances, 10_000.0 ** (-np.arange(0, H, 2) / H))
        R = graph.concat([graph.node("Sin", angles), graph.node("Cos", angles)], 1)  # (2 T - 1, H)
        return R, graph.distances + largest                                          # the columns of keys: (T, T)

    R, rows = graph.table(("relative", term.clamp), waves)
    r = emit(term.project, graph, R).reshape(-1, A, H // A).transpose(1, 2, 0)       # (A, d_k, 2 T - 1)
    asked = (Q + graph.param(term.v.name).expand_dims(1)) * term.scale
    return Scored(Q + graph.param(term.u.name).expand_dims(1), K, _by_distance(graph, asked @ r, rows))


@emits(Disentangled)
def disentangled(term: Disentangled, graph: Graph, Q: Value, K: Value) -> Scored:
    table = term.table
    A, size = term.config.num_heads, term.config.head_size
    vectors = graph.param(table.R.name)                                              # (2 k, H)
    vectors = vectors if table.ln is None else emit(table.ln, graph, vectors)
    reach = np.arange(-table.reach, table.reach + 1)
    forth, back = (_looked_up(graph, ("disentangled", sign, table.reach, table.buckets),
                              distance_rows(sign * reach, table.reach, table.buckets)) for sign in (-1, 1))

    def scores(projection: Any, x: Value, rows: Value) -> Value:
        r = (emit(projection, graph, vectors) * term.scale).reshape(-1, A, size).transpose(1, 2, 0)
        return _by_distance(graph, x @ r, rows)

    bias = None if term.key is None else scores(term.key, Q, forth)                  # query - key
    if term.query is not None:                        # the scores of a key with every query, whose distance is negated
        by_key = scores(term.query, K, back).transpose(0, 1, 3, 2)
        bias = by_key if bias is None else bias + by_key
    return Scored(Q * (1 / sqrt(1 + (term.key is not None) + (term.query is not None))), K, bias)
