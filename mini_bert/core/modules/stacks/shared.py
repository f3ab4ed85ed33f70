"""ALBERT's stack: one layer, applied L times. Its gradients are the sums over its L applications."""

from ...config import ModelConfig
from ...module import Module
from ...registry import make, register
from .plain import PlainStack


@register("stack", "shared")
class SharedStack(PlainStack):
    def _blocks(self, config: ModelConfig) -> list[Module]:
        return [make("block", config.block, config, 0)] * config.num_layers
