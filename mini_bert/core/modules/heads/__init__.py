"""Heads on top of the encoder: from hidden rows to logits, label scores, or one vector per sequence."""

from . import absent, mlm, poolers, replaced_tokens, sentences, sequence_tasks, tasks, token_tasks, transform

__all__ = ["absent", "mlm", "poolers", "replaced_tokens", "sentences", "sequence_tasks", "tasks", "token_tasks",
           "transform"]
