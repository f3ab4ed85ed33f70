"""What stands on the encoder: from hidden rows to logits, the scores of labels, or one vector per sequence."""

from . import absent, mlm, poolers, replaced_tokens, sentences, tasks, transform

__all__ = ["absent", "mlm", "poolers", "replaced_tokens", "sentences", "tasks", "transform"]
