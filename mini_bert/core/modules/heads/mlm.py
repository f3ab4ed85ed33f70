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
from ...formulas import Steps, StepSpec
from ...module import Layout, Norm, Sizes
from ...ops import Activation
from ...params import Gradients, Parameters, Tie
from ...registry import Word, make, register
from ..linear import Linear

_AXES = ("hidden", "vocabulary")


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
    """One linear map to the vocabulary, with weights of its own.

    Its weights start at 0.1 / sqrt(H): a normalised h then gives logits of deviation 0.1 whatever H is,
    so the first loss is within a few thousandths of ln V.
    """

    def __init__(self, config: ModelConfig):
        H = config.hidden_size
        self.decode = Linear("mlm_head_W", "mlm_head_b", H, config.vocab_size, 0.1 / sqrt(H), component="mlm_head",
                             symbol="W_L", axes=_AXES)

    def layout(self) -> Layout:
        yield from self.decode.layout()

    def forward(self, params: Parameters, hidden: Array, ctx: Context) -> tuple[Array, Any]:
        """hidden (M, H) -> logits (M, V)."""
        return self.decode.forward(params, hidden)

    def backward(self, dlogits: Array, cache: Any, grads: Gradients, ctx: Context) -> Array:
        """dlogits (M, V) -> dhidden (M, H)."""
        return self.decode.backward(dlogits, cache, grads)

    def steps(self, h: str) -> Steps:
        yield self.decode.step("logits", "Logits of words", "L", h, "head", axes=("vocabulary",))

    def floats(self, sizes: Sizes) -> int:
        return sizes.rows * self.decode.shape[0]              # the hidden rows


@register("mlm_head", "tied")
class TiedHead(PlainHead):
    """The token embeddings as decoder, with a bias per piece unless `bias=false`."""

    def __init__(self, config: ModelConfig, bias: bool = True):
        if config.embedding_width != config.hidden_size:
            raise ConfigError("mlm_head: tied needs embeddings as wide as the model; with an embedding_size, use bert.")
        self.decode = Linear("mlm_head_W", "mlm_head_b" if bias else None, config.hidden_size, config.vocab_size,
                             config.init_std, component="mlm_head", symbol="W_L", axes=_AXES)

    def layout(self) -> Layout:
        return tied_to_embeddings(self.decode)


@register("mlm_head", "bert")
class BertHead(MLMHead):
    """BERT's: a transform, then the token embeddings as decoder, with a bias per piece.

    `activation` is that of the transform, if another than the model's; with `transform_bias=false` and `bias=false` the
    transform and the decoder have none.
    """

    def __init__(self, config: ModelConfig, activation: Word | None = None, transform_bias: bool = True,
                 bias: bool = True):
        H, E, V = config.hidden_size, config.embedding_width, config.vocab_size
        self.activation: Activation = make("activation", config.activation if activation is None else activation)
        self.transform = Linear("mlm_transform_W", "mlm_transform_b" if transform_bias else None, H, E, config.init_std,
                                component="mlm_head", symbol="W_T")
        self.ln: Norm = make("norm", config.norm, config, "mlm_transform_ln", component="mlm_head",
                             **({"size": E} if config.embedding_size else {}))
        self.decode = Linear("mlm_head_W", "mlm_head_b" if bias else None, E, V, config.init_std, component="mlm_head",
                             symbol="W_L", axes=_AXES)

    def layout(self) -> Layout:
        yield from self.transform.layout()
        yield from self.ln.layout()
        yield from tied_to_embeddings(self.decode)

    def forward(self, params: Parameters, hidden: Array, ctx: Context) -> tuple[Array, Any]:
        """hidden (M, H) -> logits (M, V)."""
        transformed, transform = self.transform.forward(params, hidden)
        transformed = ctx.hook("head_hidden", transformed)
        activated, activation = self.activation.forward(transformed, transformed)
        normed, ln = self.ln.forward(params, ctx.hook("head_activation", activated))
        logits, decode = self.decode.forward(params, ctx.hook("head_normed", normed))    # (M, V)
        return logits, (transform, activation, ln, decode)

    def backward(self, dlogits: Array, cache: Any, grads: Gradients, ctx: Context) -> Array:
        """dlogits (M, V) -> dhidden (M, H)."""
        transform, activation, ln, decode = cache
        dnormed = ctx.hook("head_normed", self.decode.backward(dlogits, decode, grads))  # logits = normed E^T + b
        dactivated = ctx.hook("head_activation", self.ln.backward(dnormed, ln, grads))
        dtransformed = self.activation.backward(dactivated, activation, dactivated)
        return self.transform.backward(ctx.hook("head_hidden", dtransformed), transform, grads)

    def steps(self, h: str) -> Steps:
        yield self.transform.step("head_hidden", "Head: transform", "v", h, "head")
        yield StepSpec("head_activation", "Head: activation", "g", self.activation.formula, ("head_hidden",), (),
                       "head")
        yield self.ln.step("head_normed", "Head: LayerNorm", "k", "head_activation")
        yield self.decode.step("logits", "Logits of words", "L", "head_normed", "head", axes=("vocabulary",))

    def floats(self, sizes: Sizes) -> int:
        return sizes.rows * self.decode.shape[0] * (3 + self.activation.extra)
