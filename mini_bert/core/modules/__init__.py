"""The parts of models: classes with parameters, a forward pass and, directly below it, the backward pass. Pure
functions of arrays are in core/ops; core/model.py puts the parts together. Importing this package registers every
built-in word."""

from ..ops import gelu, gelu_tanh, relu
from . import attention, blocks, embeddings, feedforward, heads, losses, norms, stacks

__all__ = ["attention", "blocks", "embeddings", "feedforward", "gelu", "gelu_tanh", "heads", "losses", "norms", "relu",
           "stacks"]
