"""Optimisers, one per file: from gradients to a step."""

from . import adamw, lion, lookahead, sgd

__all__ = ["adamw", "lion", "lookahead", "sgd"]
