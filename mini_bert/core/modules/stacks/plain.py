"""BERT's stack: L layers with parameters of their own, one after the other.

In the last layer only the selected tokens are computed. With `ctx.recompute` a layer keeps only its input and is
recomputed for its backward pass (gradient checkpointing): only the activations of one layer at a time are in memory, at
the price of one more forward pass. Dropout is keyed by its position in the model and not by when it is drawn, so the
gradients are the same, bit for bit. Without it, `ctx.activations` gives the precision in which a layer's cache is kept.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from ....errors import InputError
from ...arrays import Array
from ...config import ModelConfig
from ...context import Context
from ...formulas import Steps, in_layer
from ...module import Layout, Module, Sizes, names_of
from ...params import Gradients, Parameters
from ...registry import make, register


@register("stack", "plain")
class PlainStack:
    """`layers[i]` is the block that runs at depth i."""

    orders: ClassVar[bool] = False
    remembers: ClassVar[bool] = False

    def __init__(self, config: ModelConfig):
        self.layers = tuple(self._blocks(config))
        self.below = len(self.layers) - 1
        # a backward that has come down to a depth will add no more to the parameters of these names
        self._complete = [names_of([layer]) - names_of(self.layers[:depth]) for depth, layer in enumerate(self.layers)]

    def _blocks(self, config: ModelConfig) -> list[Module]:
        return [make("block", config.block, config, i) for i in range(config.num_layers)]

    def layout(self) -> Layout:
        for layer in dict.fromkeys(self.layers):              # a layer that runs twice has its parameters once
            yield from layer.layout()

    def _at(self, ctx: Context, depth: int) -> Context:
        return ctx.in_layer(depth, last=depth >= self.below)

    def forward(self, params: Parameters, x: Array, ctx: Context) -> tuple[Array, list[dict[str, Any]]]:
        """x (B*T, H) -> the last layer's output (M, H), one row for each selected token."""
        return self._through(params, x, range(len(self.layers)), ctx)

    def backward(self, dy: Array, caches: list[dict[str, Any]], grads: Gradients, ctx: Context, *,
                 forget: bool = False) -> Array:
        """dy (M, H) -> dx (B*T, H). With `forget`, a layer's cache is dropped when its gradients are there."""
        return self._through_backward(dy, range(len(self.layers)), caches, grads, ctx, forget)

    def _through(self, params: Parameters, x: Array, depths: range, ctx: Context) -> tuple[Array, list[dict[str, Any]]]:
        """Layer after layer, and their caches."""
        caches = []
        for depth in depths:
            x, cache = self._run(params, x, depth, ctx)
            caches.append(cache)
        return x, caches

    def _through_backward(self, dy: Array, depths: range, caches: list[dict[str, Any]], grads: Gradients, ctx: Context,
                          forget: bool) -> Array:
        for depth in reversed(depths):
            dy = self._run_backward(dy, caches.pop() if forget else caches[depth], depth, grads, ctx)
        return dy

    def _run(self, params: Parameters, x: Array, depth: int, ctx: Context) -> tuple[Array, dict[str, Any]]:
        """One layer, and what the pass keeps of it."""
        inside = ctx.each(lambda one: self._at(one, depth))
        y, cache = self.layers[depth].forward(params, x, inside)
        if ctx.recompute:
            cache = {"x": x, "hidden": y, "_again": (params, x, inside)}
        elif ctx.forward_only:
            cache = {"hidden": y, "_forward_only": True}
        else:
            cache = ctx.activations.kept(cache, params)
        return y, cache

    def _run_backward(self, dy: Array, cache: Mapping[str, Any], depth: int, grads: Gradients, ctx: Context) -> Array:
        layer = self.layers[depth]
        if "_again" in cache:
            _, cache = layer.forward(*cache["_again"])
        elif "_forward_only" in cache:
            raise InputError("This cache comes from a pass with forward_only, which keeps nothing for a backward pass.")
        else:
            cache = ctx.activations.opened(cache)
        dx = layer.backward(dy, cache, grads, self._at(ctx, depth))
        if ctx.last:
            grads.complete(self._complete[depth])
        return dx

    def steps(self, x: str) -> Steps:
        for depth, layer in enumerate(self.layers):
            yield from in_layer(layer.steps(x), depth)
            x = f"hidden_{depth}"

    def floats(self, sizes: Sizes) -> int:
        everything = Sizes(sizes.tokens, sizes.tokens, sizes.length)
        return sum(layer.floats(everything) for layer in self.layers[:-1]) + self.layers[-1].floats(sizes)
