"""What a forward pass remembers, for the backward pass and for the reader."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from ..errors import InputError
from .arrays import Array, Deferred
from .context import Context

Value = TypeVar("Value")


def resolved(part: Mapping[str, Any]) -> dict[str, Any]:
    """A component's cache with all its activations computed."""
    return {name: value.compute() if isinstance(value, Deferred) else value for name, value in part.items()}


def of_layer(values: Mapping[str, Value], name: str, layer: int) -> Value:
    """The value of attention that has this name in a layer; refused where the layer's block has no attention."""
    if f"{name}_{layer}" not in values:
        raise InputError(f"Layer {layer} of this model computes no {name}: its block has no attention of this kind.")
    return values[f"{name}_{layer}"]


def of_every_layer(values: Mapping[str, Value], name: str, layers: int) -> list[Value]:
    """The value of attention that has this name, such as attention_weights, layer by layer."""
    return [of_layer(values, name, layer) for layer in range(layers)]


@dataclass(eq=False)
class Cache(Mapping[str, Array]):
    """The activations of one pass by name: `cache["attention_weights_0"]`, `list(cache)`.

    The parts hold what each component's backward needs. Their arrays are listed under the component's
    name for them and the layer's number; keys that begin with an underscore are the operations' own.
    Where all tokens were computed an array of rows is shown as (B, T, ...), where some were selected as (M, ...).
    """

    ctx: Context
    embeddings: dict[str, Any]
    layers: list[dict[str, Any]] = field(default_factory=list)
    final_ln: Any = None
    top: dict[str, Any] = field(default_factory=dict)       # final hidden rows, logits
    head: Any = None

    def _named(self) -> Iterator[tuple[str, Array | Deferred]]:
        parts = [("", self.embeddings), *((f"_{i}", layer) for i, layer in enumerate(self.layers)), ("", self.top)]
        for suffix, part in parts:
            for name, value in part.items():
                if isinstance(value, np.ndarray | Deferred) and not name.startswith("_"):
                    yield name + suffix, value

    def shape_of(self, n: int) -> tuple[int, ...]:
        """The shape of a result with n features per token: (B, T, n), or (M, n) where some were selected."""
        select = self.ctx.select
        return (select.B, select.T, n) if select.rows is None else (select.M, n)

    def of_group(self, ctx: Context, selected: slice, tokens: slice) -> "Cache":
        """Of a forward-only pass over several groups, the part of one: what is there for a reader."""
        def own(values: Mapping[str, Any]) -> dict[str, Any]:
            return {name: value[tokens if len(value) == self.ctx.select.tokens else selected]
                    for name, value in values.items() if isinstance(value, np.ndarray) and not name.startswith("_")}

        return Cache(ctx, own(self.embeddings), [own(layer) for layer in self.layers], self.final_ln, own(self.top))

    def __getitem__(self, name: str) -> Array:
        select = self.ctx.select
        for known, value in self._named():
            if known == name:
                array = value.compute() if isinstance(value, Deferred) else value
                whole = array.ndim == 2 and len(array) == select.B * select.T
                return array.reshape(select.B, select.T, -1) if whole else array
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._named())

    def __len__(self) -> int:
        return sum(1 for _ in self._named())
