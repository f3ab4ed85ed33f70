"""Transformer-XL's stack: every layer keeps the input of its attention for the next part of the text.

Reading `ctx.memory` works as in any other stack; this stack also keeps the rows from which `memory_after`
(core/memory.py) makes the next memory. This needs no copy, since the backward pass needs these rows anyway.
"""

from typing import Any, ClassVar

from ...arrays import Array
from ...context import Context
from ...memory import KEPT
from ...params import Parameters
from ...registry import register
from .plain import PlainStack


@register("stack", "recurrent")
class RecurrentStack(PlainStack):
    remembers: ClassVar[bool] = True

    def forward(self, params: Parameters, x: Array, ctx: Context) -> tuple[Array, list[dict[str, Any]]]:
        if ctx.groups:                                        # several lengths have no common memory
            return super().forward(params, x, ctx)
        attended: dict[str, Array] = {}

        def keep(name: str, value: Array) -> Array:
            value = ctx.hook(name, value)
            if name.startswith("attention_input_"):
                attended[name] = value[: ctx.select.tokens]           # of two streams the first
            return value

        y, caches = super().forward(params, x, ctx.but(hook=keep))
        for depth, cache in enumerate(caches):
            if (name := f"attention_input_{depth}") in attended:
                cache[KEPT] = attended[name]
        return y, caches
