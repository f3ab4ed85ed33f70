"""ALBERT: narrow embeddings, layers that are shared, and a sentence-order head on the pooler.

The map from the embeddings to the layers is there even where both are of one width. Of `num_hidden_layers` calls each
runs `inner_group_num` layers, so that the depth is their product.
"""

from collections.abc import Mapping, Set
from typing import Any

from ...core.config import ModelConfig
from ...core.registry import parse_word
from .bert import BertLayout
from .layout import HuggingFaceLayout
from .stored import array, linear, norm, table
from .tables import SIZES, Switch

_LAYER = "encoder.albert_layer_groups.{i}.albert_layers.{k}"


class AlbertLayout(HuggingFaceLayout):
    model_type, family, prefix = "albert", "Albert", "albert."
    fields = {**{name: keys for name, keys in SIZES.items() if name != "num_layers"},
              "vocab_size": ("vocab_size", 30000), "hidden_size": ("hidden_size", 4096),
              "num_heads": ("num_attention_heads", 64), "intermediate_size": ("intermediate_size", 16384),
              "dropout": ("hidden_dropout_prob", 0.0), "attention_dropout": ("attention_probs_dropout_prob", 0.0)}
    activation = ("hidden_act", "gelu_new")
    required = {"position_embedding_type": "absolute"}
    defaults = {"pad_token_id": 0}
    encoder = {
        **table("token_embeddings", "embeddings.word_embeddings"),
        **table("position_embeddings", "embeddings.position_embeddings"),
        **table("token_type_embeddings", "embeddings.token_type_embeddings"),
        **norm("embedding_ln", "embeddings.LayerNorm"),
        **linear("embedding_projection_W", "encoder.embedding_hidden_mapping_in"),
        **linear("W_Q", _LAYER + ".attention.query"),
        **linear("W_K", _LAYER + ".attention.key"),
        **linear("W_V", _LAYER + ".attention.value"),
        **linear("W_O", _LAYER + ".attention.dense"),
        **norm("ln1", _LAYER + ".attention.LayerNorm"),
        **linear("W1", _LAYER + ".ffn"),
        **linear("W2", _LAYER + ".ffn_output"),
        **norm("ln2", _LAYER + ".full_layer_layer_norm"),
        **linear("pooler_W", "pooler"),
    }
    heads = {
        **linear("mlm_transform_W", "predictions.dense"),
        **norm("mlm_transform_ln", "predictions.LayerNorm"),
        **linear("mlm_head_W", "predictions.decoder", bias=False),
        **array("mlm_head_b", "predictions.bias"),
        **linear("sentence_W", "sop_classifier.classifier"),
    }
    switches = {"mlm_head": Switch("predictions.bias", "bert"), "pooler": Switch("pooler.weight", "tanh"),
                "sentence_head": Switch("sop_classifier.classifier.weight", "pooled")}
    tied = {"predictions.decoder.weight": "embeddings.word_embeddings.weight",
            "predictions.decoder.bias": "predictions.bias"}
    tasks = BertLayout.tasks

    def ours(self, config: Mapping[str, Any], names: Set[str]) -> dict[str, Any]:
        groups, inner = (self.whole_number(config, key, 1, least=1) for key in ("num_hidden_groups", "inner_group_num"))
        E, H = self.whole_number(config, "embedding_size", 128), config.get("hidden_size", 4096)
        options = [f"{name}={value}" for name, value in (("groups", groups), ("inner", inner)) if value != 1]
        return {"num_layers": self.whole_number(config, "num_hidden_layers", 12) * inner,
                "stack": f"shared({', '.join(options)})" if options else "shared",
                "embedding_size": E if E != H else 0, "embeddings": "sum" if E != H else "sum(projected=true)"}

    def theirs(self, config: ModelConfig) -> dict[str, Any]:
        options = parse_word(config.stack).options
        inner = options.get("inner", 1)
        return {"num_hidden_layers": config.num_layers // inner, "num_hidden_groups": options.get("groups", 1),
                "inner_group_num": inner, "embedding_size": config.embedding_width}

    def numbering(self, layer: int, config: ModelConfig) -> dict[str, int]:
        group, k = divmod(layer, parse_word(config.stack).options.get("inner", 1))
        return {"i": group, "k": k}
