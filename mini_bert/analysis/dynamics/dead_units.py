"""Dead units: features inside a feed-forward network that are off at every token of a text.

A unit is off where its activation is below a millionth of the layer's largest; with ReLU exactly at 0. What is off
everywhere has no gradient and comes back only if the layers below change.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ...core.arrays import Array, BoolArray, IntArray
from ...core.model import MiniBERT
from ...errors import InputError
from ...evaluation.probabilities import Floats

_OFF = 1e-6                   # of the layer's largest activation


class Tokens(NamedTuple):
    """Sequences of token ids (B, T), with True at real tokens, and their types, if there are any."""

    ids: IntArray
    mask: BoolArray
    types: IntArray | None = None


def dead_units(model: MiniBERT, batches: Iterable[Tokens]) -> list[float]:
    """The share of each layer's units that are off at every token."""
    largest: dict[int, Floats] = {}
    names = {f"ffn_activation_{layer}": layer for layer in range(model.config.num_layers)}
    for batch in batches:
        real = batch.mask.ravel()

        def look(name: str, value: Array, real: BoolArray = real) -> Array:
            if name in names:
                here = np.abs(value.reshape(len(real), -1)[real]).max(axis=0).astype(np.float64)
                before = largest.get(names[name])
                largest[names[name]] = here if before is None else np.maximum(before, here)
            return value

        model.encode(batch.ids, batch.mask, token_types=batch.types, forward_only=True, hook=look)
    for name, layer in names.items():
        if layer not in largest:
            raise InputError(f"This model computes no {name}: its layers have no feed-forward network of this kind.")
    return [float((largest[layer] <= _OFF * largest[layer].max(initial=0)).mean()) for layer in names.values()]
