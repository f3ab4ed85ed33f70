"""Heads on top of the encoder: from hidden rows to logits, label scores, or one vector per sequence."""

from . import absent, mlm, poolers, replaced_tokens, sentences, tasks, transform

__all__ = ["absent", "mlm", "poolers", "replaced_tokens", "sentences", "tasks", "transform"]
