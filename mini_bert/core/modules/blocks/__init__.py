"""Blocks: one layer of a model, attention and feed-forward around a residual path."""
