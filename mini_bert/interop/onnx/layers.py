"""Norms, linear maps, feed-forward networks and blocks. Values are (B, T, H): nothing is selected.

A block is given the rows that answer (keys and values) and those that ask; they are the same but in a decoder.
"""

import numpy as np

from ...core.modules.blocks.convolved import ConvolvedLayer
from ...core.modules.blocks.post_ln import PostLNLayer
from ...core.modules.blocks.pre_ln import PreLNLayer
from ...core.modules.feedforward.gated import GatedMLP
from ...core.modules.feedforward.mlp import MLP
from ...core.modules.heads.transform import Transform
from ...core.modules.linear import Linear
from ...core.modules.norms.identity import NoNorm
from ...core.modules.norms.layernorm import LayerNorm
from ...core.modules.norms.rmsnorm import RMSNorm
from .emitters import emit, emits
from .graph import Graph, Value


@emits(Linear)
def linear(part: Linear, graph: Graph, x: Value) -> Value:
    y = x @ graph.param(part.W)
    return y if part.b is None else y + graph.param(part.b)


@emits(LayerNorm)
def layernorm(norm: LayerNorm, graph: Graph, x: Value) -> Value:
    shift = [graph.param(norm.beta)] if norm.bias else []
    return graph.node("LayerNormalization", x, graph.param(norm.gamma), *shift, axis=-1, epsilon=norm.eps)


@emits(RMSNorm)
def rmsnorm(norm: RMSNorm, graph: Graph, x: Value) -> Value:
    square = graph.node("ReduceMean", x * x, axes=[-1])
    return x / graph.node("Sqrt", square + norm.eps) * graph.param(norm.gamma.name)


@emits(NoNorm)
def no_norm(norm: NoNorm, graph: Graph, x: Value) -> Value:
    return x


@emits(MLP)
def mlp(part: MLP, graph: Graph, x: Value) -> Value:
    return linear(part.contract, graph, emit(part.activation, graph, linear(part.expand, graph, x)))


@emits(GatedMLP)
def gated_mlp(part: GatedMLP, graph: Graph, x: Value) -> Value:
    activated = emit(part.activation, graph, linear(part.expand, graph, x))
    return linear(part.contract, graph, activated * linear(part.gate, graph, x))


@emits(Transform)
def transform(part: Transform, graph: Graph, x: Value) -> Value:
    y: Value = emit(part.activation, graph, linear(part.linear, graph, x))
    return y if part.ln is None else emit(part.ln, graph, y)


@emits(PostLNLayer)
def post_ln(block: PostLNLayer, graph: Graph, answers: Value, asks: Value) -> Value:
    middle = emit(block.ln1, graph, emit(block.attention, graph, answers, asks) + asks)
    found: Value = emit(block.ln2, graph, emit(block.feedforward, graph, middle) + middle)
    return found


@emits(PreLNLayer)
def pre_ln(block: PreLNLayer, graph: Graph, answers: Value, asks: Value) -> Value:
    keys = emit(block.ln1, graph, answers)
    queries = keys if answers is asks else emit(block.ln1, graph, asks)
    middle: Value = emit(block.attention, graph, keys, queries) + asks
    found: Value = emit(block.feedforward, graph, emit(block.ln2, graph, middle)) + middle
    return found


@emits(ConvolvedLayer)
def convolved(block: ConvolvedLayer, graph: Graph, answers: Value, asks: Value) -> Value:
    y = post_ln(block, graph, answers, asks)
    if not block.convolves:
        return y
    p = block.width // 2
    real = answers * graph.mask.astype(np.float32).expand_dims(2)
    padded = graph.node("Pad", real, np.array([0, p, 0, 0, p, 0]))                   # (B, T + 2 p, H)
    windows = [padded.cut(1, j, np.iinfo(np.int64).max if j == 2 * p else j - 2 * p) for j in range(block.width)]
    active = emit(block.activation, graph, linear(block.convolve, graph, graph.concat(windows, -1)))
    found: Value = emit(block.ln3, graph, y + active)
    return found
