"""Objectives on one vector per sentence, and what they share. A teacher's vectors are in objectives/distillation."""

from . import contrastive

__all__ = ["contrastive"]
