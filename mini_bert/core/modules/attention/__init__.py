"""Attention, and in `scores` what acts on its queries, keys and scores."""

from . import scores, self_attention

__all__ = ["scores", "self_attention"]
