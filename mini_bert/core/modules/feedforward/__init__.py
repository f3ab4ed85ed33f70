"""The feed-forward network of a layer, which processes each token separately."""

from . import gated, mlp

__all__ = ["gated", "mlp"]
