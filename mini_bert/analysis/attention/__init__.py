"""Attention heads: what they look at, and how much they matter."""
