"""Attention, and in `scores` what acts on its queries, keys and scores."""

from . import gated, scores, self_attention

__all__ = ["gated", "scores", "self_attention"]
