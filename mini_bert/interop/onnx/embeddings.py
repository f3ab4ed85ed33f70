"""From ids to the rows of the first layer."""

import numpy as np

from ...core.modules.embeddings.embeddings import Embeddings
from ...core.modules.embeddings.positions import LearnedPositions, NoPositions
from .emitters import emit, emits
from .graph import Graph, Value


@emits(Embeddings)
def embeddings(part: Embeddings, graph: Graph) -> Value:
    x = graph.param(part.tokens.name).take(graph.ids)                                # (B, T, E)
    positions: Value | None = emit(part.positions, graph)
    x = x if positions is None else x + positions
    if part.types is not None:
        x = x + graph.param(part.types.name).take(graph.types)
    for stage in part.stages:
        own = {"norm": part.ln, "project": part.project}.get(stage)
        x = x if own is None else emit(own, graph, x)
    return x


@emits(LearnedPositions)
def learned(part: LearnedPositions, graph: Graph) -> Value:
    table = graph.param(part.spec.name)
    if part.padding < 0:
        return table.cut(0, 0, graph.length)
    padding = graph.node("Equal", graph.ids, np.int64(part.padding))
    real = graph.node("Not", padding).astype(np.int64)
    return table.take(graph.node("CumSum", real, np.int64(1)) * real + np.int64(part.padding))


@emits(NoPositions)
def none(part: NoPositions, graph: Graph) -> None:
    return None
