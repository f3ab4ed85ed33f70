"""Optimisers, one per file: from gradients to a step."""

from . import adamw

__all__ = ["adamw"]
