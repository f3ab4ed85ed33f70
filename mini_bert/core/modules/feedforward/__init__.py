"""The feed-forward network of a layer, which works on each token by itself."""

from . import mlp

__all__ = ["mlp"]
