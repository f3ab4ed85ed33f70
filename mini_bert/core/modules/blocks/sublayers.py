"""What the blocks of BERT share: attention, feed-forward and two norms, chosen by the config's words."""

from typing import Any

from ...config import ModelConfig
from ...module import Layout, Module, Norm, Sizes
from ...registry import make

AROUND = "The way past the sub-layer: it only has to add what is missing, and the gradient has a short way back."

class Sublayers:
    """The parts of one layer: the first of Mini-BERT, unless a config and a layer's number are given."""

    def __init__(self, config: ModelConfig | None = None, layer: int = 0):
        config = ModelConfig() if config is None else config
        self.rate, self.size = config.dropout, config.hidden_size
        self.attention: Module = make("attention", config.attention, config, layer)
        self.feedforward: Module = make("feedforward", config.feedforward, config, layer)
        self.ln1: Norm = make("norm", config.norm, config, "ln1", layer)
        self.ln2: Norm = make("norm", config.norm, config, "ln2", layer)

    def layout(self) -> Layout:
        for part in (self.attention, self.feedforward, self.ln1, self.ln2):
            yield from part.layout()

    def _floats_of_parts(self, sizes: Sizes) -> int:
        masks = sizes.rows * self.size // 2 if self.rate else 0      # two masks of one byte per element
        return self.attention.floats(sizes) + self.feedforward.floats(sizes) + self.ln2.floats(sizes) + masks


Cache = dict[str, Any]
