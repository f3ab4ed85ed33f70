"""Optimisers, one per file: from gradients to a step."""

from . import adamw, lookahead, sgd

__all__ = ["adamw", "lookahead", "sgd"]
