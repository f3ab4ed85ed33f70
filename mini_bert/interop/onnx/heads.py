"""What stands on the encoder. Each gives the named outputs of the graph, with the names of their axes."""

from typing import NoReturn

import numpy as np

from ...core.modules.heads.absent import NoHead
from ...core.modules.heads.mlm import BertHead, PlainHead, TiedHead
from ...core.modules.heads.poolers import TanhPooler
from ...core.modules.heads.replaced_tokens import ReplacedTokensHead
from ...core.modules.heads.sequence_tasks import FirstTokenHead, LastTokenHead, SequenceHead
from ...core.modules.heads.tasks import TaskHead
from ...core.modules.heads.token_tasks import SpanHead, TokenHead
from ...errors import InputError
from .emitters import emit, emits
from .graph import Graph, Value

Outputs = dict[str, tuple[Value, tuple[str | int, ...]]]
TOKENS = ("batch", "length")


@emits(NoHead)
def absent(head: NoHead, graph: Graph, hidden: Value) -> NoReturn:
    raise InputError(head.refusal)


@emits(PlainHead, TiedHead)
def plain(head: PlainHead, graph: Graph, hidden: Value) -> Outputs:
    return {"logits": (emit(head.decode, graph, hidden), (*TOKENS, graph.config.vocab_size))}


@emits(BertHead)
def bert(head: BertHead, graph: Graph, hidden: Value) -> Outputs:
    transformed = emit(head.transform, graph, hidden)
    return {"logits": (emit(head.decode, graph, transformed), (*TOKENS, graph.config.vocab_size))}


@emits(ReplacedTokensHead)
def replaced_tokens(head: ReplacedTokensHead, graph: Graph, hidden: Value) -> Outputs:
    transformed = emit(head.transform, graph, hidden)
    return {"logits": (emit(head.decide, graph, transformed).squeeze(2), TOKENS)}


@emits(TanhPooler)
def tanh_pooler(pooler: TanhPooler, graph: Graph, rows: Value) -> Value:
    return graph.node("Tanh", emit(pooler.project, graph, rows))


def mean_of(graph: Graph, hidden: Value, chosen: Value) -> Value:
    """The mean of the rows (B, T, H) at the chosen tokens (B, T) -> (B, H)."""
    weights = chosen.astype(np.float32)
    shares = weights / graph.node("ReduceSum", weights, np.array([1]), keepdims=1)
    return (shares.expand_dims(1) @ hidden).squeeze(1)


# ---------------------------------------------------------------- tasks


def _scores(head: TaskHead, graph: Graph, rows: Value) -> Value:
    rows = rows if head.before is None else emit(head.before, graph, rows)
    scores: Value = emit(head.linear, graph, rows)
    return scores


def _of_sequence(head: TaskHead, graph: Graph, rows: Value) -> Outputs:
    return {"logits": (_scores(head, graph, rows), ("batch", head.outputs))}


@emits(SequenceHead)
def sequence(head: SequenceHead, graph: Graph, hidden: Value) -> Outputs:
    return _of_sequence(head, graph, mean_of(graph, hidden, graph.mask))


@emits(FirstTokenHead)
def first_token(head: FirstTokenHead, graph: Graph, hidden: Value) -> Outputs:
    return _of_sequence(head, graph, hidden.take(np.int64(0), axis=1))


@emits(LastTokenHead)
def last_token(head: LastTokenHead, graph: Graph, hidden: Value) -> Outputs:
    real = graph.mask if head.padding < 0 else graph.node(
        "Not", graph.node("Equal", graph.ids, np.int64(head.padding)))
    last = graph.node("ArgMax", graph.positions * real.astype(np.int64), axis=1, keepdims=1)
    return _of_sequence(head, graph, mean_of(graph, hidden, graph.node("Equal", graph.positions, last)))


@emits(TokenHead)
def tokens(head: TokenHead, graph: Graph, hidden: Value) -> Outputs:
    return {"logits": (_scores(head, graph, hidden), (*TOKENS, head.outputs))}


@emits(SpanHead)
def span(head: SpanHead, graph: Graph, hidden: Value) -> Outputs:
    scores = _scores(head, graph, hidden)
    return {name: (graph.where(graph.mask, scores.take(np.int64(place), axis=2), -np.inf), TOKENS)
            for place, name in enumerate(("start_logits", "end_logits"))}
