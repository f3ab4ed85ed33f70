"""What models are built from: parts with parameters, a forward and the backward beneath it. Pure functions of arrays
are in core/ops; core/model.py puts the parts together. Importing this package registers every built-in word."""

from ..ops import gelu, gelu_tanh, relu
from . import attention, blocks, embeddings, feedforward, heads, losses, norms, stacks

__all__ = ["attention", "blocks", "embeddings", "feedforward", "gelu", "gelu_tanh", "heads", "losses", "norms", "relu",
           "stacks"]
