"""The feed-forward network of a layer, which works on each token by itself."""

from . import gated, mlp

__all__ = ["gated", "mlp"]
