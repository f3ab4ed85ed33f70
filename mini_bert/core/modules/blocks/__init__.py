"""Blocks: one layer of a model, attention and feed-forward around a residual path."""

from . import convolved, post_ln, pre_ln

__all__ = ["convolved", "post_ln", "pre_ln"]
