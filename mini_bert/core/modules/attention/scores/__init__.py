"""Terms of the attention scores, one per file; a config lists them in `score_terms`."""

from . import (
    alibi,
    causal,
    causal_rows,
    disentangled,
    relative,
    relative_keys,
    rotary,
    segments,
    sliding_window,
    t5_bias,
)

__all__ = ["alibi", "causal", "causal_rows", "disentangled", "relative", "relative_keys", "rotary", "segments",
           "sliding_window", "t5_bias"]
