"""Clipping, one rule per file: what limits the gradients between the backward and the optimiser's step."""

from . import adaptive, norm

__all__ = ["adaptive", "norm"]
