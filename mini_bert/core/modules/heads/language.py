"""What stands on the encoder: the heads that turn hidden rows into word scores, and the pooler.

    plain:  logits = h W + b                                     its own W (H, V)
    bert:   logits = LN(act(h W_t + b_t)) E^T + b                E is token_embeddings, tied
    pooler: p = tanh(h_[CLS] W_p + b_p)
"""

from collections.abc import Iterator
from math import sqrt
from typing import Any, Protocol

from ....errors import InputError
from ...arrays import Array
from ...config import ModelConfig
from ...hooks import Watch, unwatched
from ...ops.tanh import tanh_backward, tanh_forward
from ...params import Gradients, Parameters, ParamSpec, Tie
from ..feedforward.mlp import Activation
from ..linear import LayerNorm, Linear


class Head(Protocol):
    def layout(self) -> Iterator[ParamSpec | Tie]: ...
    def forward(self, params: Parameters, h: Array, watch: Watch = unwatched) -> tuple[Array, Any]: ...
    def backward(self, dlogits: Array, cache: Any, grads: Gradients, watch: Watch = unwatched) -> Array: ...


class Pooler(Protocol):
    def layout(self) -> Iterator[ParamSpec]: ...
    def forward(self, params: Parameters, first: Array) -> tuple[Array, Any]: ...
    def backward(self, dpooled: Array, cache: Any, grads: Gradients) -> Array: ...


class PlainHead:
    """One linear map to the vocabulary, with weights of its own.

    Its weights start at 0.1 / sqrt(H): a normalised h then gives logits of deviation 0.1 whatever H is,
    so the first loss is within a few thousandths of ln V.
    """

    def __init__(self, config: ModelConfig, activation: Activation):
        H = config.hidden_size
        self.decode = Linear("mlm_head_W", "mlm_head_b", H, config.vocab_size, 0.1 / sqrt(H))

    def layout(self) -> Iterator[ParamSpec | Tie]:
        yield from self.decode.layout()

    def forward(self, params: Parameters, h: Array, watch: Watch = unwatched) -> tuple[Array, Any]:
        """h (M, H) -> logits (M, V)."""
        return self.decode.forward(params, h)

    def backward(self, dlogits: Array, cache: Any, grads: Gradients, watch: Watch = unwatched) -> Array:
        """dlogits (M, V) -> dh (M, H)."""
        return self.decode.backward(dlogits, cache, grads)


class BertHead:
    """BERT's: a transform in H, then the token embeddings as decoder, with a bias per word."""

    def __init__(self, config: ModelConfig, activation: Activation):
        H, V = config.hidden_size, config.vocab_size
        self.activation = activation
        self.transform = Linear("mlm_transform_W", "mlm_transform_b", H, H, config.init_std)
        self.ln = LayerNorm("mlm_transform_ln", H, config.layernorm_eps)
        self.decode = Linear("mlm_head_W", "mlm_head_b", H, V, config.init_std)

    def layout(self) -> Iterator[ParamSpec | Tie]:
        yield from self.transform.layout()
        yield from self.ln.layout()
        yield from (spec for spec in self.decode.layout() if spec.name != self.decode.W)
        yield Tie(self.decode.W, "token_embeddings", transposed=True)    # its gradient adds to theirs

    def forward(self, params: Parameters, h: Array, watch: Watch = unwatched) -> tuple[Array, Any]:
        """h (M, H) -> logits (M, V)."""
        hidden, transform = self.transform.forward(params, h)
        hidden = watch("head_hidden", hidden)
        activated, activation = self.activation.forward(hidden, hidden)
        normed, ln = self.ln.forward(params, watch("head_activation", activated))
        logits, decode = self.decode.forward(params, watch("head_normed", normed))   # (M, V)
        return logits, (transform, activation, ln, decode)

    def backward(self, dlogits: Array, cache: Any, grads: Gradients, watch: Watch = unwatched) -> Array:
        """dlogits (M, V) -> dh (M, H)."""
        transform, activation, ln, decode = cache
        dnormed = watch("head_normed", self.decode.backward(dlogits, decode, grads))     # logits = normed E^T + b
        dactivated = watch("head_activation", self.ln.backward(dnormed, ln, grads))
        dhidden = self.activation.backward(dactivated, activation, dactivated)
        return self.transform.backward(watch("head_hidden", dhidden), transform, grads)


class NoHead:
    """An encoder alone, such as Hugging Face's BertModel."""

    def __init__(self, config: ModelConfig, activation: Activation):
        pass

    def layout(self) -> Iterator[ParamSpec | Tie]:
        return iter(())

    def forward(self, params: Parameters, h: Array, watch: Watch = unwatched) -> tuple[Array, Any]:
        raise InputError("This model has no MLM head, so it has no logits; use encode() for hidden states.")

    def backward(self, dlogits: Array, cache: Any, grads: Gradients, watch: Watch = unwatched) -> Array:
        raise InputError("This model has no MLM head, so there is no gradient from logits.")


class TanhPooler:
    """BERT's summary of a sequence: the first token's vector through a linear map and tanh."""

    def __init__(self, config: ModelConfig):
        self.project = Linear("pooler_W", "pooler_b", config.hidden_size, config.hidden_size, config.init_std)

    def layout(self) -> Iterator[ParamSpec]:
        yield from self.project.layout()

    def forward(self, params: Parameters, first: Array) -> tuple[Array, Any]:
        """first (B, H), the rows of [CLS] -> pooled (B, H)."""
        projected, project = self.project.forward(params, first)
        pooled, tanh = tanh_forward(projected)
        return pooled, (project, tanh)

    def backward(self, dpooled: Array, cache: Any, grads: Gradients) -> Array:
        """dpooled (B, H) -> dfirst (B, H)."""
        project, tanh = cache
        return self.project.backward(tanh_backward(dpooled, tanh), project, grads)


class NoPooler:
    def __init__(self, config: ModelConfig):
        pass

    def layout(self) -> Iterator[ParamSpec]:
        return iter(())

    def forward(self, params: Parameters, first: Array) -> tuple[Array, Any]:
        raise InputError("This model has no pooler; take hidden[:, 0], or a mean over the tokens.")

    def backward(self, dpooled: Array, cache: Any, grads: Gradients) -> Array:
        raise InputError("This model has no pooler, so there is no gradient from it.")
