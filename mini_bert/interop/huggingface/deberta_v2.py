"""DeBERTa v2 and v3, which are one architecture: DebertaV2Model, DebertaV2ForMaskedLM and the classes for tasks.

Beside what v1 has: distances in logarithmic buckets, vectors of distances that are normalised and meet the layer's own
matrices of keys and queries. The convolution of v2-xlarge and v2-xxlarge is refused.
"""

from collections.abc import Mapping
from typing import Any

from ...core.registry import Word
from .deberta import DebertaLayout
from .stored import linear, norm
from .tables import POST_LN

_LAYER = "encoder.layer.{i}.attention.self."
_OF_V1 = ("W_Q_{i}", "W_K_{i}", "W_V_{i}", "b_Q_{i}", "b_V_{i}", "W_KR_{i}", "W_QR_{i}", "b_QR_{i}")


class DebertaV2Layout(DebertaLayout):
    model_type, family = "deberta-v2", "DebertaV2"
    fields = {**DebertaLayout.fields, "num_layers": ("num_hidden_layers", 24), "num_heads": ("num_attention_heads", 24),
              "hidden_size": ("hidden_size", 1536), "intermediate_size": ("intermediate_size", 6144),
              "vocab_size": ("vocab_size", 128100)}
    fixed = POST_LN
    required = {"conv_kernel_size": 0}
    encoder = {
        **{ours: stored for ours, stored in DebertaLayout.encoder.items() if ours not in _OF_V1},
        **linear("W_Q", _LAYER + "query_proj"), **linear("W_K", _LAYER + "key_proj"),
        **linear("W_V", _LAYER + "value_proj"),
        **linear("W_KR", _LAYER + "pos_key_proj"), **linear("W_QR", _LAYER + "pos_query_proj"),
        **norm("relative_ln", "encoder.LayerNorm"),
    }

    def _options(self, config: Mapping[str, Any], types: list[str]) -> dict[str, Any]:
        buckets, normed = config.get("position_buckets", -1), str(config.get("norm_rel_ebd", "none")).lower()
        share = bool(config.get("share_att_key", False))
        found = {**super()._options(config, types), "buckets": buckets, "share": share,
                 "norm": "layer_norm" in (part.strip() for part in normed.split("|")),
                 "key_bias": not share and "c2p" in types}
        return {name: "true" if value is True else value for name, value in found.items() if value not in (False, -1)}

    def _described(self, term: Word) -> dict[str, Any]:
        return {**super()._described(term), "position_buckets": term.options.get("buckets", 0) or -1,
                "share_att_key": term.options.get("share", False),
                "norm_rel_ebd": "layer_norm" if term.options.get("norm", False) else "none"}
