"""Gradients of values inside a pass, without those of parameters, which are most of a backward's work."""

from collections.abc import Collection, Iterable

import numpy as np

from ...core.arrays import Array, IntArray
from ...core.cache import Cache
from ...core.hooks import recorder
from ...core.model import MiniBERT


class DiscardedGradients:
    """A place for parameters' gradients that keeps none."""

    def add(self, name: str, value: Array) -> None:
        pass

    def add_rows(self, name: str, rows: IntArray, values: Array) -> None:
        pass

    def add_product(self, name: str, x: Array, dy: Array) -> None:
        pass

    def complete(self, names: Iterable[str]) -> None:
        pass


def value_gradients(model: MiniBERT, dlogits: Array, cache: Cache, names: Collection[str]) -> dict[str, Array]:
    """d loss / d value for the named values, as core shows them, from d loss / d logits."""
    found: dict[str, Array] = {}
    model.backward(dlogits, cache, DiscardedGradients(), hook=recorder(found, np.ndarray.copy, names))
    return found
