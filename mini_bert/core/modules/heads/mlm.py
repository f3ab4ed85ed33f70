"""Heads that turn hidden rows into a logit for each piece of the vocabulary.

    plain:  logits = h W + b                                     its own W (H, V)
    tied:   logits = h E^T + b                                   E is token_embeddings
    bert:   logits = LN(act(h W_t + b_t)) E^T + b                W_t (H, E) leads to the width of the embeddings
"""

from math import sqrt
from typing import Any

from ....errors import ConfigError
from ...arrays import Array, BoolArray
from ...config import ModelConfig
from ...context import Context
from ...formulas import Steps
from ...module import Layout, Sizes
from ...params import Gradients, Parameters, Tie
from ...registry import Word, register
from ..linear import Linear
from .transform import Transform

_LOGITS = "One score per word of the vocabulary: softmax turns each row into the model's guess at the word there."


def tied_to_embeddings(decode: Linear) -> Layout:
    """The parameters of a decoder whose matrix is that of the embeddings: the gradients of both add up."""
    yield from (spec for spec in decode.layout() if spec.name != decode.W)
    yield Tie(decode.W, "token_embeddings", transposed=True, symbol=decode.symbol)


class MLMHead:
    """What both have: they read the masked tokens, and end in a map to the vocabulary."""

    decode: Linear

    def reads(self, mask: BoolArray, places: BoolArray | None) -> BoolArray:
        return mask if places is None else places


@register("mlm_head", "plain")
class PlainHead(MLMHead):
    """One linear map to the vocabulary, with weights of its own and, unless `bias=false`, a bias per piece.

    Its weights start at 0.1 / sqrt(H): a normalised h then gives logits of deviation 0.1 whatever H is,
    so the first loss is within a few thousandths of ln V.
    """

    def __init__(self, config: ModelConfig, bias: bool = True):
        self.decode = _decoder(config, config.hidden_size, bias, 0.1 / sqrt(config.hidden_size))

    def layout(self) -> Layout:
        yield from self.decode.layout()

    def forward(self, params: Parameters, hidden: Array, ctx: Context) -> tuple[Array, Any]:
        """hidden (M, H) -> logits (M, V)."""
        return self.decode.forward(params, hidden)

    def backward(self, dlogits: Array, cache: Any, grads: Gradients, ctx: Context) -> Array:
        """dlogits (M, V) -> dhidden (M, H)."""
        return self.decode.backward(dlogits, cache, grads)

    def steps(self, h: str) -> Steps:
        yield self.decode.step("logits", "Logits of words", "L", h, "head", axes=("vocabulary",), why=_LOGITS)

    def floats(self, sizes: Sizes) -> int:
        return sizes.rows * self.decode.shape[0]              # the hidden rows


@register("mlm_head", "tied")
class TiedHead(PlainHead):
    """The token embeddings as decoder, with a bias per piece unless `bias=false`."""

    def __init__(self, config: ModelConfig, bias: bool = True):
        if config.embedding_width != config.hidden_size:
            raise ConfigError("mlm_head: tied needs embeddings as wide as the model; with an embedding_size, use bert.")
        self.decode = _decoder(config, config.hidden_size, bias, config.init_std)

    def layout(self) -> Layout:
        return tied_to_embeddings(self.decode)


@register("mlm_head", "bert")
class BertHead(MLMHead):
    """BERT's: a transform, then the token embeddings as decoder, with a bias per piece.

    `activation` is that of the transform, if another than the model's; with `transform_bias=false` and `bias=false` the
    transform and the decoder have none; with `tied=false` the decoder has a matrix of its own.
    """

    def __init__(self, config: ModelConfig, activation: Word | None = None, transform_bias: bool = True,
                 bias: bool = True, tied: bool = True):
        E = config.embedding_width
        self.transform = Transform(config, "mlm_transform_W", config.activation if activation is None else activation,
                                   norm="mlm_transform_ln", bias=transform_bias, width=E, component="mlm_head",
                                   shown="head", title="Head")
        self.decode, self.tied = _decoder(config, E, bias, config.init_std), tied

    def layout(self) -> Layout:
        yield from self.transform.layout()
        yield from tied_to_embeddings(self.decode) if self.tied else self.decode.layout()

    def forward(self, params: Parameters, hidden: Array, ctx: Context) -> tuple[Array, Any]:
        """hidden (M, H) -> logits (M, V)."""
        transformed, transform = self.transform.forward(params, hidden, ctx)             # (M, E)
        logits, decode = self.decode.forward(params, transformed)
        return logits, (transform, decode)

    def backward(self, dlogits: Array, cache: Any, grads: Gradients, ctx: Context) -> Array:
        """dlogits (M, V) -> dhidden (M, H)."""
        transform, decode = cache
        dtransformed = self.decode.backward(dlogits, decode, grads)                      # logits = transformed E^T + b
        return self.transform.backward(dtransformed, transform, grads, ctx)

    def steps(self, h: str) -> Steps:
        yield from self.transform.steps(h)
        yield self.decode.step("logits", "Logits of words", "L", "head_normed", "head", axes=("vocabulary",),
                               why=_LOGITS)

    def floats(self, sizes: Sizes) -> int:
        return self.transform.floats(sizes)


def _decoder(config: ModelConfig, width: int, bias: bool, std: float) -> Linear:
    return Linear("mlm_head_W", "mlm_head_b" if bias else None, width, config.vocab_size, std, component="mlm_head",
                  symbol="W_L", axes=("hidden", "vocabulary"))
