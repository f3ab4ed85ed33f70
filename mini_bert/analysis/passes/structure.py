"""The steps of a model's forward pass, in order, by what fills its slots.

A variant of a slot is described here once, under its class; the names are those that core shows to a watch. Forward
steps, backward steps and their formulas follow from this list.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...core.model import MiniBERT
from ...core.modules.attention.self_attention import SelfAttention
from ...core.modules.blocks.layer import PostLNLayer, PreLNLayer, TransformerLayer
from ...core.modules.embeddings.embeddings import LearnedPositions, NoPositions
from ...core.modules.feedforward.mlp import FeedForward
from ...core.modules.heads.language import BertHead, NoHead, PlainHead
from ...core.modules.linear import LayerNorm, Linear
from ...core.ops.gelu import gelu_forward
from ...core.ops.gelu_tanh import gelu_tanh_forward
from ...core.ops.relu import relu_forward
from ...errors import InputError
from .step_formulas import StepSpec

Steps = Iterator[StepSpec]


def steps_of(model: MiniBERT) -> list[StepSpec]:
    """Every step from the token embeddings to the logits, or to the hidden states of a model without a head."""
    return list(_steps(model))


def has_head(model: MiniBERT) -> bool:
    """Does the model predict words?"""
    return not isinstance(model.parts.head, NoHead)


def _steps(model: MiniBERT) -> Steps:
    parts = model.parts
    x = "embeddings"
    yield from _embeddings(model)
    for i, layer in enumerate(parts.layers):
        yield from _described(BLOCKS, layer)(layer, i, x)
        x = f"hidden_{i}"
    if parts.final_ln is not None:
        yield _norm("final_hidden", "h", parts.final_ln, x, None)
        x = "final_hidden"
    yield from _described(HEADS, parts.head)(parts.head, x)


def _described(table: Mapping[Any, Callable[..., Steps]], part: Any) -> Callable[..., Steps]:
    for known in type(part).__mro__:
        if known in table:
            return table[known]
    raise InputError(f"The steps of {type(part).__name__} are not described; analysis/passes/structure.py has those of "
                     f"{', '.join(known.__name__ for known in table)}.")


# -------------------------------------------------------------------- single steps


def _linear(name: str, symbol: str, linear: Linear, x: str, layer: int | None, component: str,
            kind: str = "linear") -> StepSpec:
    bias = () if linear.b is None else (("b", linear.b),)
    return StepSpec(name, symbol, kind, (x,), (("W", linear.W), *bias), layer, component)


def _norm(name: str, symbol: str, norm: LayerNorm, x: str, layer: int | None) -> StepSpec:
    return StepSpec(name, symbol, "layernorm", (x,), (("gamma", norm.gamma), ("beta", norm.beta)), layer, "layernorm")


def _activation(name: str, symbol: str, owner: Any, x: str, layer: int | None, component: str) -> StepSpec:
    kind = ACTIVATIONS.get(owner.activation.forward)
    if kind is None:
        raise InputError(f"The activation {owner.activation.forward.__name__} is not described; "
                         f"analysis/passes/structure.py has {', '.join(ACTIVATIONS.values())}.")
    return StepSpec(name, symbol, kind, (x,), (), layer, component)


# -------------------------------------------------------------------- parts


def _embeddings(model: MiniBERT) -> Steps:
    embed = model.parts.embed
    terms = [StepSpec("token_vectors", "e", "lookup", (), (("E", embed.tokens.name),), None, "embeddings"),
             *_described(POSITIONS, embed.positions)(embed.positions)]
    if embed.types is not None:
        terms.append(StepSpec("type_vectors", "s", "type lookup", (), (("E", embed.types.name),), None, "embeddings"))
    yield from terms
    names = tuple(term.name for term in terms)
    kind = {1: "same", 2: "sum", 3: "sum of three"}[len(names)]
    if embed.ln is None:
        yield StepSpec("embeddings", "x_0", kind, names, (), None, "embeddings")
    else:
        yield StepSpec("embedding_sum", "u", kind, names, (), None, "embeddings")
        yield _norm("embeddings", "x_0", embed.ln, "embedding_sum", None)


def _learned_positions(positions: LearnedPositions) -> Steps:
    yield StepSpec("position_vectors", "p", "positions", (), (("E", positions.spec.name),), None, "embeddings")


def _nothing(*_: Any) -> Steps:
    return iter(())


def _attention(attention: SelfAttention, i: int) -> Steps:
    for letter, projection in zip("QKV", (attention.query, attention.key, attention.value), strict=True):
        yield _linear(f"{letter}_{i}", letter, projection, f"attention_input_{i}", i, "attention", "to heads")
    yield StepSpec(f"scores_{i}", "S", "scores", (f"Q_{i}", f"K_{i}"), (), i, "attention")
    yield StepSpec(f"attention_weights_{i}", "A", "softmax", (f"scores_{i}",), (), i, "attention")
    yield StepSpec(f"context_{i}", "C", "weighted sum", (f"attention_weights_{i}", f"V_{i}"), (), i, "attention")
    yield _linear(f"attention_output_{i}", "O", attention.output, f"context_{i}", i, "attention", "from heads")


def _feedforward(feedforward: FeedForward, i: int) -> Steps:
    yield _linear(f"ffn_hidden_{i}", "u", feedforward.expand, f"ffn_input_{i}", i, "feedforward")
    yield _activation(f"ffn_activation_{i}", "a", feedforward, f"ffn_hidden_{i}", i, "feedforward")
    yield _linear(f"ffn_output_{i}", "f", feedforward.contract, f"ffn_activation_{i}", i, "feedforward")


def _post_ln(layer: TransformerLayer, i: int, x: str) -> Steps:
    yield StepSpec(f"attention_input_{i}", "z", "same", (x,), (), i, "residual")
    yield from _described(ATTENTIONS, layer.attention)(layer.attention, i)
    yield StepSpec(f"attention_residual_{i}", "r", "sum", (x, f"attention_output_{i}"), (), i, "residual")
    yield _norm(f"middle_{i}", "m", layer.ln1, f"attention_residual_{i}", i)
    yield StepSpec(f"ffn_input_{i}", "n", "same", (f"middle_{i}",), (), i, "residual")
    yield from _described(FEEDFORWARDS, layer.feedforward)(layer.feedforward, i)
    yield StepSpec(f"ffn_residual_{i}", "q", "sum", (f"middle_{i}", f"ffn_output_{i}"), (), i, "residual")
    yield _norm(f"hidden_{i}", f"x_{i + 1}", layer.ln2, f"ffn_residual_{i}", i)


def _pre_ln(layer: TransformerLayer, i: int, x: str) -> Steps:
    yield _norm(f"attention_input_{i}", "z", layer.ln1, x, i)
    yield from _described(ATTENTIONS, layer.attention)(layer.attention, i)
    yield StepSpec(f"middle_{i}", "m", "sum", (x, f"attention_output_{i}"), (), i, "residual")
    yield _norm(f"ffn_input_{i}", "n", layer.ln2, f"middle_{i}", i)
    yield from _described(FEEDFORWARDS, layer.feedforward)(layer.feedforward, i)
    yield StepSpec(f"hidden_{i}", f"x_{i + 1}", "sum", (f"middle_{i}", f"ffn_output_{i}"), (), i, "residual")


def _plain_head(head: PlainHead, h: str) -> Steps:
    yield _linear("logits", "L", head.decode, h, None, "head")


def _bert_head(head: BertHead, h: str) -> Steps:
    yield _linear("head_hidden", "v", head.transform, h, None, "head")
    yield _activation("head_activation", "g", head, "head_hidden", None, "head")
    yield _norm("head_normed", "k", head.ln, "head_activation", None)
    yield _linear("logits", "L", head.decode, "head_normed", None, "head")


POSITIONS: dict[Any, Callable[..., Steps]] = {LearnedPositions: _learned_positions, NoPositions: _nothing}
ATTENTIONS = {SelfAttention: _attention}
FEEDFORWARDS = {FeedForward: _feedforward}
BLOCKS: dict[Any, Callable[..., Steps]] = {PostLNLayer: _post_ln, PreLNLayer: _pre_ln}
HEADS: dict[Any, Callable[..., Steps]] = {PlainHead: _plain_head, BertHead: _bert_head, NoHead: _nothing}
ACTIVATIONS: dict[Any, str] = {relu_forward: "relu", gelu_forward: "gelu", gelu_tanh_forward: "gelu tanh"}
