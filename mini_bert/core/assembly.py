"""The parts of a model, chosen by its config's words and put in order."""

from collections.abc import Iterator
from math import sqrt

from .config import ModelConfig
from .modules.attention.self_attention import SelfAttention
from .modules.blocks.layer import TransformerLayer
from .modules.embeddings.embeddings import Embeddings
from .modules.feedforward.mlp import FeedForward
from .modules.heads.language import Head, Pooler
from .modules.linear import LayerNorm
from .params import ParamSpec, Tie
from .registry import fill


class Assembly:
    """Components without numbers: what a model is made of, and where its parameters lie."""

    def __init__(self, config: ModelConfig):
        self.embed = Embeddings(config, fill(config, "position_embeddings")(config))
        self.layers = [_layer(config, i) for i in range(config.num_layers)]
        self.final_ln = LayerNorm("final_ln", config.hidden_size, config.layernorm_eps) \
            if config.final_layernorm else None
        self.head: Head = fill(config, "mlm_head")(config, fill(config, "activation"))
        self.pooler: Pooler = fill(config, "pooler")(config)

    def layout(self) -> Iterator[ParamSpec | Tie]:
        """Every parameter in the order of the data."""
        for part in (self.embed, *self.layers, self.final_ln, self.head, self.pooler):
            if part is not None:
                yield from part.layout()


def parameter_specs(config: ModelConfig) -> list[ParamSpec]:
    """The parameters of a model with this config, without making it."""
    return [item for item in Assembly(config).layout() if isinstance(item, ParamSpec)]


def _layer(config: ModelConfig, layer: int) -> TransformerLayer:
    # each of the 2 L sub-layers adds to the residual path; scaling them keeps its sum at one size
    residual_std = config.init_std / sqrt(2 * config.num_layers) if config.scale_residual_init else config.init_std
    attention = SelfAttention(config, layer, residual_std)
    feedforward = FeedForward(config, layer, fill(config, "activation"), residual_std)
    block: TransformerLayer = fill(config, "block")(config, layer, attention, feedforward)
    return block
