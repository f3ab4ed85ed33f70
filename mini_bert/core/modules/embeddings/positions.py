"""Positions that are added to the embeddings: learned vectors, or none."""

import numpy as np

from ...arrays import Array
from ...config import ModelConfig
from ...context import Context
from ...formulas import Steps, StepSpec
from ...module import Layout
from ...ops.embedding import lookup
from ...params import Gradients, Parameters, ParamSpec
from ...registry import register


@register("position_embeddings", "learned")
class LearnedPositions:
    """One learned vector for each position, added to every sequence."""

    def __init__(self, config: ModelConfig):
        self.spec = ParamSpec("position_embeddings", (config.max_seq_length, config.hidden_size), config.init_std,
                              component="embeddings", axes=("positions",), symbol="E_P")

    def layout(self) -> Layout:
        yield self.spec

    def forward(self, params: Parameters, x: Array, ctx: Context) -> None:
        x += ctx.hook("position_vectors", params[self.spec.name][: x.shape[1]])

    def backward(self, dx: Array, grads: Gradients, ctx: Context) -> None:
        drows = ctx.hook("position_vectors", dx.sum(axis=0))            # all sequences got the same vectors
        grads.add_rows(self.spec.name, np.arange(len(drows)), drows)

    def steps(self) -> Steps:
        yield StepSpec("position_vectors", "Position embeddings", "p", lookup("positions", "t"), (),
                       (("E", self.spec.name),), "embeddings")


@register("position_embeddings", "none")
class NoPositions:
    """Nothing added: the model sees a bag of tokens, unless its attention knows positions."""

    def __init__(self, config: ModelConfig):
        pass

    def layout(self) -> Layout:
        return iter(())

    def forward(self, params: Parameters, x: Array, ctx: Context) -> None:
        pass

    def backward(self, dx: Array, grads: Gradients, ctx: Context) -> None:
        pass

    def steps(self) -> Steps:
        return iter(())
