"""From ids to the input of the first layer."""

from . import embeddings, positions

__all__ = ["embeddings", "positions"]
