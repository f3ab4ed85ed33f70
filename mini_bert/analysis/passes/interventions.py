"""Passes with something changed: heads switched off, single weights set to other values.

A head that is off adds nothing: its context, the weighted sum of values, is zero for every token. What the prediction
loses is what the head was good for on this text.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from ...core.arrays import Array, IntArray
from ...core.hooks import Hook, no_hook
from ...core.model import MiniBERT
from ...core.ops.softmax import softmax_forward
from ...errors import InputError
from ..attention.importance import scaled_heads

Place = tuple[str, tuple[int, ...]]       # a parameter, and an index in it
Heads = Iterable[tuple[int, int]]         # (layer, head)


def without_heads(model: MiniBERT, heads: Heads) -> Hook:
    """A hook that switches heads off."""
    factors = np.ones((model.config.num_layers, model.config.num_heads), np.float32)
    for layer, head in heads:
        if not (0 <= layer < factors.shape[0] and 0 <= head < factors.shape[1]):
            raise InputError(f"There is no head {head} in layer {layer}; the model has {factors.shape[0]} layers with "
                             f"{factors.shape[1]} heads each.")
        factors[layer, head] = 0
    return no_hook if factors.all() else scaled_heads(factors)


@contextmanager
def edited(model: MiniBERT, edits: Mapping[Place, float]) -> Iterator[dict[Place, float]]:
    """Other values for single weights, put back bit for bit at the end. Gives what they were."""
    params, before = model.params, dict[Place, float]()
    for name, index in edits:
        check_place(model, name, index)
        before[name, index] = float(params[name][index])
    try:
        for (name, index), value in edits.items():
            params[name][index] = value
        yield before
    finally:
        for (name, index), value in before.items():
            params[name][index] = value


def check_place(model: MiniBERT, name: str, index: tuple[int, ...]) -> None:
    """Refuse a parameter, or a place in it, that the model does not have."""
    if name not in model.params:
        raise InputError(f"The model has no parameter {name[:60]!r}.")
    shape = model.params[name].shape
    if len(index) != len(shape) or not all(0 <= i < size for i, size in zip(index, shape, strict=True)):
        raise InputError(f"There is no place {list(index)} in {name}, whose shape is {shape}.")


def changed_probabilities(model: MiniBERT, ids: IntArray, *, types: IntArray | None = None, heads: Heads = (),
                          edits: Mapping[Place, float] | None = None) -> Array:
    """What the changed model expects in each row (T, V) of one sequence of ids (T,)."""
    hook = without_heads(model, heads)
    with edited(model, edits or {}), np.errstate(over="ignore", invalid="ignore"):    # the model refuses infinite ones
        logits, _ = model.forward(ids[None], token_types=None if types is None else types[None], hook=hook)
    found: Array = softmax_forward(logits[0])[0]
    return found
