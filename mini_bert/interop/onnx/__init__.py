"""Models as files of ONNX: each part of a model is written as nodes by a function of its own, found by its class.

A part of your own gets its nodes from a function that `emits` decorates; an activation from its formula.
"""

from . import activations, attention, embeddings, heads, layers, scores, stacks
from .emitters import emit, emits
from .graph import Graph, Value
from .model_file import OUTPUTS, compare, onnx_bytes
from .scores import Scored

__all__ = ["OUTPUTS", "Graph", "Scored", "Value", "activations", "attention", "compare", "embeddings", "emit", "emits",
           "heads", "layers", "onnx_bytes", "scores", "stacks"]
