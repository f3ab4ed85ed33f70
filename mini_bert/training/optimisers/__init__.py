"""Optimisers, one per file: from gradients to a step."""

from . import adamw, lion, lookahead, muon, sgd

__all__ = ["adamw", "lion", "lookahead", "muon", "sgd"]
