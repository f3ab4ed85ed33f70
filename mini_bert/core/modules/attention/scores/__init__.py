"""Terms of the attention scores, one per file; a config lists them in `score_terms`."""

from . import causal, relative_keys, rotary, sliding_window

__all__ = ["causal", "relative_keys", "rotary", "sliding_window"]
