"""Position vectors that are added to the embeddings: learned ones, or none."""

from typing import ClassVar

import numpy as np

from ....errors import ConfigError, InputError
from ...arrays import Array, IntArray
from ...config import ModelConfig
from ...context import Context
from ...formulas import Formula, Steps, StepSpec
from ...module import Layout
from ...ops.embedding import lookup, summed_rows
from ...params import Gradients, Parameters, ParamSpec
from ...registry import register


@register("position_embeddings", "learned")
class LearnedPositions:
    """One learned vector for each position, added to every sequence.

    With `padding=p`, RoBERTa's way: tokens other than the one with the id p are numbered from p + 1, and p itself is
    the position of all padding.
    """

    def __init__(self, config: ModelConfig, padding: int = -1):
        if not isinstance(padding, int) or isinstance(padding, bool) or not -1 <= padding < config.vocab_size:
            raise ConfigError(f"learned: padding must be the id of a token, not {padding}.")
        self.padding = padding
        self.spec = ParamSpec("position_embeddings", (config.max_seq_length + padding + 1, config.embedding_width),
                              config.init_std, component="embeddings", axes=("positions",), symbol="E_P")

    def layout(self) -> Layout:
        yield self.spec

    def _numbered(self, ids: IntArray) -> IntArray:
        """The row of each token (B, T)."""
        real = ids != self.padding
        rows: IntArray = np.cumsum(real, axis=1) * real + self.padding
        return rows

    def forward(self, params: Parameters, x: Array, ctx: Context) -> None:
        table = params[self.spec.name]
        if self.padding < 0 or ctx.ids is None:
            if ctx.earlier + x.shape[1] > len(table):
                raise InputError(f"There are {len(table)} positions; {ctx.earlier} tokens and {x.shape[1]} more do not "
                                 "fit.")
            x += ctx.hook("position_vectors", table[ctx.earlier : ctx.earlier + x.shape[1]])
        else:
            x += ctx.hook("position_vectors", table[self._numbered(ctx.ids).reshape(-1)]).reshape(x.shape)

    def backward(self, dx: Array, grads: Gradients, ctx: Context) -> None:
        if self.padding < 0 or ctx.ids is None:
            drows = ctx.hook("position_vectors", dx.sum(axis=0))        # all sequences got the same vectors
            grads.add_rows(self.spec.name, np.arange(ctx.earlier, ctx.earlier + len(drows)), drows)
        else:
            drows = ctx.hook("position_vectors", dx.reshape(-1, dx.shape[2]))
            grads.add_rows(self.spec.name, *summed_rows(drows, self._numbered(ctx.ids).reshape(-1)))

    def steps(self) -> Steps:
        formula = lookup("positions", "t") if self.padding < 0 else Formula(
            "numbered positions", "{E}[numbered(ids)]", (), {"E": "scatter(d{y}, numbered(ids))"}, page="embedding",
            functions={"numbered": lambda ids: self._numbered(ids[None])[0]})
        yield StepSpec("position_vectors", "Position embeddings", "p", formula, (), (("E", self.spec.name),),
                       "embeddings",
                       why="Attention alone cannot tell “dog bites man” from “man bites dog”; this vector tells each "
                           "token where it stands.")


@register("position_embeddings", "none")
class NoPositions:
    """Nothing added: the model sees a bag of tokens, unless its attention knows positions."""

    limited: ClassVar[bool] = False       # of any length: see core/inputs.py

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
