"""Terms of the attention scores, one per file; a config lists them in `score_terms`."""

from . import relative_keys, rotary

__all__ = ["relative_keys", "rotary"]
