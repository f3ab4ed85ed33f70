"""How the layers are run, from the embeddings to the last layer's rows."""

from ...core.modules.stacks.enhanced_decoder import EnhancedDecoder
from ...core.modules.stacks.plain import PlainStack
from ...core.modules.stacks.recurrent import RecurrentStack
from ...core.modules.stacks.shared import SharedStack
from ...core.modules.stacks.two_stream import TwoStreamStack
from .emitters import emit, emits
from .graph import Graph, Value


@emits(PlainStack, SharedStack, RecurrentStack)
def plain(stack: PlainStack, graph: Graph, x: Value) -> Value:
    for layer in stack.layers:
        x = emit(layer, graph, x, x)
    return x


@emits(TwoStreamStack)
def two_stream(stack: TwoStreamStack, graph: Graph, x: Value) -> Value:
    graph.own = True                      # without an order there is the content alone, and padding sees itself
    return plain(stack, graph, x)


@emits(EnhancedDecoder)
def enhanced_decoder(stack: EnhancedDecoder, graph: Graph, x: Value) -> Value:
    for layer in stack.layers[: stack.below]:
        x = emit(layer, graph, x, x)
    asks = x + graph.param(stack.P.name).cut(0, 0, graph.length)
    for layer in stack.layers[stack.below :]:
        asks = emit(layer, graph, x, asks)
    return asks
