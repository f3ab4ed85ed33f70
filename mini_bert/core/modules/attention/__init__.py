"""Attention, and in `scores` what acts on its queries, keys and scores."""

from . import gated, relative_values, scores, self_attention

__all__ = ["gated", "relative_values", "scores", "self_attention"]
