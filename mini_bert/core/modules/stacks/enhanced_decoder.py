"""DeBERTa's enhanced mask decoder: absolute positions come in at the end, in the queries alone.

    x_1 ... x_n                                              the layers below, which know relative positions only
    g_0 = x_n + P      g_s = layer(g_(s-1); keys and values from x_n)        s = 1 ... steps, one layer again and again

In "a new store beside the new mall" two nouns follow the same word, and relative positions alone can hardly tell which
of them is asked for. The layers below learn relations without absolute positions P; the decoder adds them where words
are predicted. `num_layers` counts what runs: the last `steps` of them are one layer. Derivation: docs/math/deberta.md
"""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from ....errors import ConfigError, InputError
from ...arrays import Array, IntArray
from ...config import ModelConfig
from ...context import Context
from ...formulas import Steps, StepSpec, in_layer, sum_of
from ...module import Layout, Module, Sizes
from ...ops.embedding import lookup, summed_rows
from ...params import Gradients, Parameters, ParamSpec
from ...registry import make, register
from ...selection import Streams
from .plain import PlainStack
from .streamed_steps import BOTH, streamed


@register("stack", "enhanced_decoder")
class EnhancedDecoder(PlainStack):
    limited: ClassVar[bool] = True        # it has a table of positions: see core/inputs.py

    def __init__(self, config: ModelConfig, steps: int = 2):
        if not isinstance(steps, int) or isinstance(steps, bool) or not 1 <= steps <= config.num_layers:
            raise ConfigError(f"enhanced_decoder: steps must be 1 to num_layers={config.num_layers}, not {steps}.")
        self.again, self.size = steps, config.hidden_size
        super().__init__(config)
        self.below = config.num_layers - steps
        self.P = ParamSpec("decoder_positions", (config.max_seq_length, self.size), config.init_std,
                           component="embeddings", axes=("positions",), symbol="E_P")

    def _blocks(self, config: ModelConfig) -> list[Module]:
        own = config.num_layers - self.again + 1
        blocks: list[Module] = [make("block", config.block, config, i) for i in range(own)]
        return blocks[:-1] + blocks[-1:] * self.again

    def layout(self) -> Layout:
        yield from super().layout()
        yield self.P

    def _at(self, ctx: Context, depth: int) -> Context:
        inside, select = super()._at(ctx, depth), ctx.select
        return inside if depth < self.below else replace(inside, select=Streams(select.B, select.T, select.positions))

    @staticmethod
    def _positions(ctx: Context) -> IntArray:
        """Of each token that is computed to the end, (M,)."""
        parts = [(one, np.arange(one.select.M) if one.select.rows is None else one.select.rows)
                 for one, _, _ in ctx.parts()]
        return np.concatenate([rows % one.select.T + one.earlier for one, rows in parts])

    def forward(self, params: Parameters, x: Array, ctx: Context) -> tuple[Array, list[dict[str, Any]]]:
        """x (B*T, H) -> the decoder's output (M, H), one row for each selected token."""
        table = params[self.P.name]
        for one, _, _ in ctx.parts():
            if one.earlier + one.select.T > len(table):
                raise InputError(f"There are {len(table)} positions; {one.earlier} tokens and {one.select.T} more do "
                                 "not fit.")
        x, caches = self._through(params, x, range(self.below), ctx)
        positions = ctx.hook("decoder_vectors", table[self._positions(ctx)])
        asks = ctx.hook("decoder_queries", ctx.select.take(x) + positions)       # (M, H)
        for depth in range(self.below, len(self.layers)):
            both = ctx.hook(f"decoder_input_{depth}", np.concatenate([x, asks]))
            asks, cache = self._run(params, both, depth, ctx)
            caches.append(cache)
        return asks, caches

    def backward(self, dy: Array, caches: list[dict[str, Any]], grads: Gradients, ctx: Context, *,
                 forget: bool = False) -> Array:
        """dy (M, H) -> dx (B*T, H)."""
        tokens = ctx.select.B * ctx.select.T
        dx = np.zeros((tokens, self.size), dy.dtype)
        for depth in reversed(range(self.below, len(self.layers))):
            dboth = self._run_backward(dy, caches.pop() if forget else caches[depth], depth, grads, ctx)
            dboth = ctx.hook(f"decoder_input_{depth}", dboth)
            dx += dboth[:tokens]                                                 # every step reads the same keys
            dy = dboth[tokens:]
        dy = ctx.hook("decoder_queries", dy)                                     # asks = take(x) + positions
        grads.add_rows(self.P.name, *summed_rows(ctx.hook("decoder_vectors", dy), self._positions(ctx)))
        dx = ctx.select.take_backward(dy, dx)
        return self._through_backward(dx, range(self.below), caches, grads, ctx, forget)

    def steps(self, x: str) -> Steps:
        for depth in range(self.below):
            yield from in_layer(self.layers[depth].steps(x), depth)
            x = f"hidden_{depth}"
        yield StepSpec("decoder_vectors", "Absolute positions", "p", lookup("positions", "t"), (),
                       (("E", self.P.name),), "embeddings", group="Decoder")
        yield StepSpec("decoder_queries", "What the decoder asks with", "g", sum_of(2), (x, "decoder_vectors"), (),
                       "residual", group="Decoder")
        asks = "decoder_queries"
        for depth in range(self.below, len(self.layers)):
            both = StepSpec("decoder_input", "Rows that answer, then rows that ask", "b", BOTH, (x, asks), (),
                            "residual")
            yield from in_layer([both, *streamed(self.layers[depth].steps(both.name), both.name)], depth)
            asks = f"hidden_{depth}"

    def floats(self, sizes: Sizes) -> int:
        everything = Sizes(sizes.tokens, sizes.tokens, sizes.length)
        decoding = self.layers[-1].floats(sizes) + self.size * sizes.rows
        return sum(layer.floats(everything) for layer in self.layers[: self.below]) \
            + self.again * decoding
