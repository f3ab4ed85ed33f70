"""Optimisers, one per file: from gradients to a step."""

from . import adamw, sgd

__all__ = ["adamw", "sgd"]
