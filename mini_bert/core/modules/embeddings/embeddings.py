"""The input of the first layer: token + position + token-type embeddings, normalised if so configured.

    x_bt = token_embeddings[ids_bt] + position_embeddings[t] + token_type_embeddings[types_bt]
"""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from ...arrays import Array, IntArray
from ...config import ModelConfig
from ...hooks import Watch, unwatched
from ...ops.dropout import dropout_backward, dropout_forward
from ...ops.embedding import embedding_forward, summed_rows
from ...params import Gradients, Parameters, ParamSpec
from ..linear import LayerNorm


class Positions(Protocol):
    """A way to tell the model where a token stands. `x` is (B, T, H) and is changed in place."""

    def layout(self) -> Iterator[ParamSpec]: ...
    def forward(self, params: Parameters, x: Array, watch: Watch = unwatched) -> None: ...
    def backward(self, dx: Array, grads: Gradients, watch: Watch = unwatched) -> None: ...


class LearnedPositions:
    """One learned vector for each position, added to every sequence."""

    def __init__(self, config: ModelConfig):
        self.spec = ParamSpec("position_embeddings", (config.max_seq_length, config.hidden_size), config.init_std)

    def layout(self) -> Iterator[ParamSpec]:
        yield self.spec

    def forward(self, params: Parameters, x: Array, watch: Watch = unwatched) -> None:
        x += watch("position_vectors", params[self.spec.name][: x.shape[1]])

    def backward(self, dx: Array, grads: Gradients, watch: Watch = unwatched) -> None:
        drows = watch("position_vectors", dx.sum(axis=0))               # all sequences got the same vectors
        grads.add_rows(self.spec.name, np.arange(len(drows)), drows)


class NoPositions:
    """Nothing added: the model sees a bag of tokens, unless its attention knows positions."""

    def __init__(self, config: ModelConfig):
        pass

    def layout(self) -> Iterator[ParamSpec]:
        return iter(())

    def forward(self, params: Parameters, x: Array, watch: Watch = unwatched) -> None:
        pass

    def backward(self, dx: Array, grads: Gradients, watch: Watch = unwatched) -> None:
        pass


class Embeddings:
    def __init__(self, config: ModelConfig, positions: Positions):
        H, std = config.hidden_size, config.init_std
        self.positions, self.rate = positions, config.dropout
        self.tokens = ParamSpec("token_embeddings", (config.vocab_size, H), std)
        self.types = ParamSpec("token_type_embeddings", (config.token_types, H), std) \
            if config.token_types else None
        self.ln = LayerNorm("embedding_ln", H, config.layernorm_eps) if config.embedding_layernorm else None

    def layout(self) -> Iterator[ParamSpec]:
        yield self.tokens
        yield from self.positions.layout()
        if self.types is not None:
            yield self.types
        if self.ln is not None:
            yield from self.ln.layout()

    def forward(self, params: Parameters, ids: IntArray, types: IntArray | None,
                rng: np.random.Generator | None, watch: Watch = unwatched) -> tuple[Array, dict[str, Any]]:
        """ids (B, T), types (B, T), all zeros if None -> x (B*T, H)."""
        x, lookup = embedding_forward(params[self.tokens.name], ids.reshape(-1))         # (B*T, H)
        x = watch("token_vectors", x)
        self.positions.forward(params, x.reshape(*ids.shape, -1), watch)
        type_lookup = ln = None
        if self.types is not None:
            flat_types = np.zeros(ids.size, np.intp) if types is None else types.reshape(-1)
            typed, type_lookup = embedding_forward(params[self.types.name], flat_types)
            x += watch("type_vectors", typed)
        if self.ln is not None:
            x, ln = self.ln.forward(params, watch("embedding_sum", x))
        x, drop = dropout_forward(x, self.rate, rng)
        x = watch("embeddings", x)
        return x, {"embeddings": x, "_ops": (ids.shape, lookup, type_lookup, ln, drop)}

    def backward(self, dx: Array, cache: dict[str, Any], grads: Gradients, watch: Watch = unwatched) -> None:
        """dx (B*T, H). There is no input to send a gradient to: ids are not numbers."""
        shape, lookup, type_lookup, ln, drop = cache["_ops"]
        dx = dropout_backward(watch("embeddings", dx), drop)
        if self.ln is not None:
            dx = watch("embedding_sum", self.ln.backward(dx, ln, grads))
        # x = tokens + positions + types: each term gets the whole gradient
        if self.types is not None:
            grads.add_rows(self.types.name, *summed_rows(watch("type_vectors", dx), type_lookup[0]))
        self.positions.backward(dx.reshape(*shape, -1), grads, watch)
        grads.add_rows(self.tokens.name, *summed_rows(watch("token_vectors", dx), lookup[0]))
