"""Attention heads: what they attend to, and how important they are."""
