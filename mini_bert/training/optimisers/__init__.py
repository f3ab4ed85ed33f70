"""Optimisers, one per file: from gradients to a step."""

from . import adamw, ema, lion, lookahead, muon, sgd

__all__ = ["adamw", "ema", "lion", "lookahead", "muon", "sgd"]
