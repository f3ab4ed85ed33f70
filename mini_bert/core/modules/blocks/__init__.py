"""Blocks: one layer of a model, attention and feed-forward around a residual path."""

from . import post_ln, pre_ln

__all__ = ["post_ln", "pre_ln"]
