"""The input of the first layer: token + position + token-type embeddings, normalised if so configured.

    x_bt = token_embeddings[ids_bt] + position_embeddings[t] + token_type_embeddings[types_bt]

Tables narrower than the model (E < H, as in ALBERT and ELECTRA) are followed by a map to its width: x W + b. The
V E + E H numbers of the two are far fewer than V H.
"""

from typing import Any

import numpy as np

from ...arrays import Array, IntArray
from ...config import ModelConfig
from ...context import Context
from ...formulas import Steps, StepSpec, sum_of
from ...module import Layout, Norm, Positions, Sizes
from ...ops.dropout import dropout_backward, dropout_forward
from ...ops.embedding import FORMULA, embedding_forward, lookup, summed_rows
from ...params import Gradients, Parameters, ParamSpec
from ...registry import make, register
from ..linear import Linear


@register("embeddings", "sum")
class Embeddings:
    """With `types=false`, token types are not embedded: they are for attention alone.

    With `projected=true`, there is a map to the model's width even where the tables have it already, as in ALBERT. With
    `project_first=true`, as in DeBERTa, that map comes before the norm, and has no bias.
    """

    def __init__(self, config: ModelConfig, types: bool = True, projected: bool = False, project_first: bool = False):
        E, std = config.embedding_width, config.init_std
        self.rate, self.size, self.width = config.dropout, E, config.hidden_size
        self.stages = ("project", "norm", "drop") if project_first else ("norm", "drop", "project")     # after the sum
        self.positions: Positions = make("position_embeddings", config.position_embeddings, config)
        self.tokens = ParamSpec("token_embeddings", (config.vocab_size, E), std, component="embeddings",
                                axes=("vocabulary",), symbol="E")
        self.types = ParamSpec("token_type_embeddings", (config.token_types, E), std, component="embeddings",
                               axes=("segments",), symbol="E_S") if config.token_types and types else None
        self.ln: Norm | None = make("norm", config.norm, config, "embedding_ln", component="embeddings",
                                    **({"size": E} if config.embedding_size and not project_first else {})) \
            if config.embedding_layernorm else None
        bias = None if project_first else "embedding_projection_b"
        self.project = Linear("embedding_projection_W", bias, E, self.width, std, symbol="W_E",
                              component="embeddings") if projected or self.width != E else None

    def layout(self) -> Layout:
        yield from self._tables()
        if self.ln is not None:
            yield from self.ln.layout()
        if self.project is not None:
            yield from self.project.layout()

    def _tables(self) -> Layout:
        yield self.tokens
        yield from self.positions.layout()
        if self.types is not None:
            yield self.types

    def before_projection(self) -> Layout:
        """The parameters of width E: what models of different widths can have in common."""
        yield from self._tables()
        if self.ln is not None and self.stages[0] == "norm":
            yield from self.ln.layout()

    def forward(self, params: Parameters, ids: IntArray, types: IntArray | None,
                ctx: Context) -> tuple[Array, dict[str, Any]]:
        """ids (B, T), types (B, T), all zeros if None -> x (B*T, H). Of groups, both are rows (sum of B*T,)."""
        x, tokens = embedding_forward(params[self.tokens.name], ids.reshape(-1))         # (B*T, H)
        x = ctx.hook("token_vectors", x)
        for one, _, here in ctx.parts():
            self.positions.forward(params, x[here].reshape(one.select.B, one.select.T, -1), one)
        type_lookup = None
        if self.types is not None:
            flat_types = np.zeros(ids.size, np.intp) if types is None else types.reshape(-1)
            typed, type_lookup = embedding_forward(params[self.types.name], flat_types)
            x += ctx.hook("type_vectors", typed)
        stages = []
        for stage in self.stages:
            x, cache = self._apply(stage, params, x, ctx)
            stages.append(cache)
        x = ctx.hook("embeddings", x)
        return x, {"embeddings": x, "_ops": (ids.shape, tokens, type_lookup, stages)}

    def backward(self, dx: Array, cache: dict[str, Any], grads: Gradients, ctx: Context) -> None:
        """dx (B*T, H). There is no input to send a gradient to: ids are not numbers."""
        shape, tokens, type_lookup, stages = cache["_ops"]
        dx = ctx.hook("embeddings", dx)
        for stage, kept in zip(reversed(self.stages), reversed(stages), strict=True):
            dx = self._apply_backward(stage, dx, kept, grads, ctx)
        # x = tokens + positions + types: each term gets the whole gradient
        if self.types is not None:
            grads.add_rows(self.types.name, *summed_rows(ctx.hook("type_vectors", dx), type_lookup[0]))
        self.positions.backward(dx.reshape(*shape, -1), grads, ctx)
        grads.add_rows(self.tokens.name, *summed_rows(ctx.hook("token_vectors", dx), tokens[0]))

    def _apply(self, stage: str, params: Parameters, x: Array, ctx: Context) -> tuple[Array, Any]:
        """One of the stages after the sum, if the model has it."""
        if stage == "drop":
            return dropout_forward(x, self.rate, ctx.dropout("embeddings", self.rate))
        if stage == "norm" and self.ln is not None:
            return self.ln.forward(params, ctx.hook("embedding_sum", x))
        if stage == "project" and self.project is not None:
            return self.project.forward(params, ctx.hook("narrow_embeddings", x))
        return x, None

    def _apply_backward(self, stage: str, dx: Array, cache: Any, grads: Gradients, ctx: Context) -> Array:
        if stage == "drop":
            return dropout_backward(dx, cache)
        if stage == "norm" and self.ln is not None:
            return ctx.hook("embedding_sum", self.ln.backward(dx, cache, grads))
        if stage == "project" and self.project is not None:
            return ctx.hook("narrow_embeddings", self.project.backward(dx, cache, grads))
        return dx

    def steps(self) -> Steps:
        terms = [StepSpec("token_vectors", "Token embeddings", "e", FORMULA, (), (("E", self.tokens.name),),
                          "embeddings"), *self.positions.steps()]
        if self.types is not None:
            terms.append(StepSpec("type_vectors", "Segment embeddings", "s", lookup("type lookup", "types"), (),
                                  (("E", self.types.name),), "embeddings",
                                  why="Tells the tokens of the first text from those of the second."))
        yield from terms
        names = tuple(term.name for term in terms)
        result = ("embeddings", "Input of the first layer", "x_0")
        before = {"project": ("narrow_embeddings", "Embeddings of width E", "w") if self.project is not None else None,
                  "norm": ("embedding_sum", "Sum of embeddings", "u") if self.ln is not None else None, "drop": None}
        stages = [(stage, found) for stage in self.stages if (found := before[stage]) is not None]
        shown = [*(found for _, found in stages), result]                        # the sum, and what is made of it
        yield StepSpec(*shown[0], sum_of(len(names)), names, (), "embeddings",
                       why="One vector holds both what the token is and where it stands.")
        for (stage, x), y in zip(stages, shown[1:], strict=True):
            if stage == "norm" and self.ln is not None:
                yield self.ln.step(*y, x[0])
            elif self.project is not None:
                yield self.project.step(*y, x[0], "embeddings")

    def floats(self, sizes: Sizes) -> int:
        wide = self.width * (1 + (self.stages[0] == "project")) if self.project is not None else 0
        return sizes.tokens * (self.size * (1 if self.ln is None else 2) + wide)
