"""DeBERTa v2 and v3, which are one architecture: DebertaV2Model, DebertaV2ForMaskedLM and the classes for tasks.

Beside what v1 has: distances in logarithmic buckets, vectors of distances that are normalised and meet the layer's own
matrices of keys and queries. v2-xlarge and v2-xxlarge have a convolution beside the first layer.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from ...core.arrays import Array
from ...core.config import ModelConfig
from ...core.registry import Word, parse_word
from ...errors import ConfigError
from .deberta import DebertaLayout
from .stored import Shape, Stored, array, linear, norm
from .tables import POST_LN, activation_word, our_activation

_LAYER = "encoder.layer.{i}.attention.self."
_OF_V1 = ("W_Q_{i}", "W_K_{i}", "W_V_{i}", "b_Q_{i}", "b_V_{i}", "W_KR_{i}", "W_QR_{i}", "b_QR_{i}")


@dataclass(frozen=True)
class Kernel(Stored):
    """Our matrix (width H, H) as the kernel (H, H, width) of a convolution: outputs, inputs, places."""

    def shape(self, ours: Shape, config: ModelConfig) -> Shape:
        return config.hidden_size, config.hidden_size, ours[0] // config.hidden_size

    def unpack(self, tensor: Array, config: ModelConfig) -> Array:
        return tensor.transpose(2, 1, 0).reshape(-1, config.hidden_size)

    def pack(self, ours: Sequence[Array], config: ModelConfig) -> Array:
        return ours[0].reshape(-1, config.hidden_size, config.hidden_size).transpose(2, 1, 0)


class DebertaV2Layout(DebertaLayout):
    model_type, family = "deberta-v2", "DebertaV2"
    fields = {**DebertaLayout.fields, "num_layers": ("num_hidden_layers", 24), "num_heads": ("num_attention_heads", 24),
              "hidden_size": ("hidden_size", 1536), "intermediate_size": ("intermediate_size", 6144),
              "vocab_size": ("vocab_size", 128100)}
    fixed = POST_LN
    required = {"conv_groups": 1}
    encoder = {
        **{ours: stored for ours, stored in DebertaLayout.encoder.items() if ours not in _OF_V1},
        **linear("W_Q", _LAYER + "query_proj"), **linear("W_K", _LAYER + "key_proj"),
        **linear("W_V", _LAYER + "value_proj"),
        **linear("W_KR", _LAYER + "pos_key_proj"), **linear("W_QR", _LAYER + "pos_query_proj"),
        **norm("relative_ln", "encoder.LayerNorm"),
        "convolution_W": Kernel("encoder.conv.conv.weight"), **array("convolution_b", "encoder.conv.conv.bias"),
        **norm("convolution_ln", "encoder.conv.LayerNorm"),
    }

    def _unused(self, config: Mapping[str, Any]) -> tuple[str, ...]:
        relative = config.get("relative_attention", False)
        return (*super()._unused(config), *(() if relative else ("encoder.LayerNorm.weight", "encoder.LayerNorm.bias")))

    def ours(self, config: Mapping[str, Any], names: Set[str]) -> dict[str, Any]:
        found, width = super().ours(config, names), self.whole_number(config, "conv_kernel_size", 0)
        if width and width % 2 == 0:
            raise ConfigError(f"conv_kernel_size {width} is not supported; the width of a convolution must be odd.")
        activation = our_activation(config, "conv_act", "tanh") if width else ""
        return {**found, "block": f"convolved(width={width}, activation={activation})"} if width else found

    def theirs(self, config: ModelConfig) -> dict[str, Any]:
        found, block = super().theirs(config), parse_word(config.block)
        if block.name == "convolved":
            return {**found, "conv_kernel_size": block.options.get("width", 3),
                    "conv_act": activation_word(str(block.options.get("activation", "tanh")))}
        return {**found, "conv_kernel_size": 0}

    def _without_terms(self) -> dict[str, Any]:
        return {**super()._without_terms(), "norm_rel_ebd": "none"}

    def _options(self, config: Mapping[str, Any], types: list[str]) -> dict[str, Any]:
        buckets, normed = config.get("position_buckets", -1), str(config.get("norm_rel_ebd", "none")).lower()
        share = bool(config.get("share_att_key", False))
        found = {"buckets": buckets, "share": share,
                 "norm": "layer_norm" in (part.strip() for part in normed.split("|")),
                 "key_bias": not share and "c2p" in types}
        return super()._options(config, types) | {name: value for name, value in found.items()
                                                  if value not in (False, -1)}

    def _described(self, term: Word) -> dict[str, Any]:
        return {**super()._described(term), "position_buckets": term.options.get("buckets", 0) or -1,
                "share_att_key": term.options.get("share", False),
                "norm_rel_ebd": "layer_norm" if term.options.get("norm", False) else "none"}
