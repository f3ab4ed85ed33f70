"""ModernBERT: pre-LN without a first norm, rotary positions, gated feed-forward, and layers that mostly look near.

Nothing has a bias by default. Every n-th layer, or those that `layer_types` names, sees all tokens and turns by other
angles than the local ones. Its heads all begin with the same transform: activation, then norm.
"""

from collections.abc import Mapping, Set
from typing import Any

from ...core.config import ModelConfig
from ...core.modules.assembly import TaskSpec
from ...core.modules.attention.scores.sliding_window import is_global
from ...core.registry import Word, parse_word, parse_words
from ...errors import ConfigError
from .layout import HuggingFaceLayout
from .stored import linear, norm, packed, table
from .tables import POST_LN, TaskClass, activation_word, our_activation

_HEAD = {**linear("task_transform_W", "head.dense"), **norm("task_ln", "head.norm"), **linear("task_W", "classifier")}


class ModernBertLayout(HuggingFaceLayout):
    model_type, family, prefix = "modernbert", "ModernBert", "model."
    fields = {"num_layers": ("num_hidden_layers", 22), "num_heads": ("num_attention_heads", 12),
              "hidden_size": ("hidden_size", 768), "intermediate_size": ("intermediate_size", 1152),
              "vocab_size": ("vocab_size", 50368), "max_seq_length": ("max_position_embeddings", 8192),
              "dropout": ("mlp_dropout", 0.0), "attention_dropout": ("attention_dropout", 0.0),
              "layernorm_eps": ("norm_eps", 1e-5), "init_std": ("initializer_range", 0.02),
              "attention_bias": ("attention_bias", False)}
    fixed = {**POST_LN, "token_types": 0, "position_embeddings": "none", "block": "pre_ln(first_norm=false)",
             "final_layernorm": True}
    activation = ("hidden_activation", "gelu")
    # theirs lie beyond a smaller vocabulary, and it then makes no model; these are the ids of our vocabularies
    defaults = {"pad_token_id": 0, "cls_token_id": 2, "bos_token_id": 2, "sep_token_id": 3, "eos_token_id": 3}
    encoder = {
        **table("token_embeddings", "embeddings.tok_embeddings"),
        **norm("embedding_ln", "embeddings.norm"),
        **norm("ln1", "layers.{i}.attn_norm"),
        **packed("W_Q W_K W_V", "layers.{i}.attn.Wqkv"),
        **linear("W_O", "layers.{i}.attn.Wo"),
        **norm("ln2", "layers.{i}.mlp_norm"),
        **packed("W1 W3", "layers.{i}.mlp.Wi"),
        **linear("W2", "layers.{i}.mlp.Wo"),
        **norm("final_ln", "final_norm"),
    }
    heads = {
        **linear("mlm_transform_W", "head.dense"),
        **norm("mlm_transform_ln", "head.norm"),
        **linear("mlm_head_W", "decoder"),
    }
    tied = {"decoder.weight": "embeddings.tok_embeddings.weight"}
    tasks = {
        "ForSequenceClassification": TaskClass("first_token", _HEAD),
        "ForTokenClassification": TaskClass("tokens", _HEAD),
        "ForQuestionAnswering": TaskClass("span", _HEAD),
    }

    def ours(self, config: Mapping[str, Any], names: Set[str]) -> dict[str, Any]:
        wide, thetas = self._global_layers(config), self._thetas(config)
        reach = self.whole_number(config, "local_attention", 128, least=2) // 2
        predicts = self.kind_in(config) not in self.tasks and "head.dense.weight" in names
        return {"score_terms": f"rotary(base={thetas[0]}, global_base={thetas[1]}, {wide}) + "
                               f"sliding_window(reach={reach}, {wide})",
                "feedforward": "gated" if config.get("mlp_bias") else "gated(bias=false)",
                "norm": "layernorm" if config.get("norm_bias") else "layernorm(bias=false)",
                "mlm_head": self._language_head(config) if predicts else "none"}

    def theirs(self, config: ModelConfig) -> dict[str, Any]:
        turn, window = (word.options for word in parse_words(config.score_terms))
        every, listed = window.get("global_every", 0), window.get("global_layers", "")
        kinds = ["full_attention" if is_global(layer, every, listed) else "sliding_attention"
                 for layer in range(config.num_layers)]
        return {"rope_parameters": {kind: {"rope_type": "default", "rope_theta": float(turn[key])} for kind, key in
                                    (("sliding_attention", "base"), ("full_attention", "global_base"))},
                "layer_types": kinds, **({"global_attn_every_n_layers": every} if every else {}),
                "local_attention": 2 * window["reach"],
                "mlp_bias": _biased(config.feedforward), "norm_bias": _biased(config.norm),
                "embedding_dropout": config.dropout, **self._head_keys(parse_word(config.mlm_head), config)}

    def task_head(self, kind: str, config: Mapping[str, Any]) -> str:
        head = super().task_head(kind, config)
        mean = head == "first_token" and config.get("classifier_pooling", "cls") == "mean"
        bias = "" if config.get("classifier_bias") else ", transform_bias=false"
        return f"{'sequence' if mean else head}(transform={self._activation(config)}, norm=true{bias})"

    def task_keys(self, config: ModelConfig, task: TaskSpec) -> dict[str, Any]:
        head = parse_word(task.head)
        return {"classifier_pooling": "mean" if head.name == "sequence" else "cls",
                **self._head_keys(Word("bert", (), {**head.options, "activation": head.options["transform"]}), config)}

    def _activation(self, config: Mapping[str, Any]) -> str:
        return our_activation(config, "classifier_activation", "gelu")

    def _language_head(self, config: Mapping[str, Any]) -> str:
        options = [f"activation={self._activation(config)}"]
        options += [] if config.get("classifier_bias") else ["transform_bias=false"]
        options += [] if config.get("decoder_bias", True) else ["bias=false"]
        return f"bert({', '.join(options)})"

    def _head_keys(self, head: Word, config: ModelConfig) -> dict[str, Any]:
        if head.name != "bert":
            return {}
        activation = str(head.options.get("activation", config.activation))
        return {"classifier_activation": activation_word(activation),
                "classifier_bias": head.options.get("transform_bias", True),
                "decoder_bias": head.options.get("bias", True)}

    def _global_layers(self, config: Mapping[str, Any]) -> str:
        """The option of our terms for the layers that see all tokens, from either form of the config."""
        said, kinds = self.whole_number(config, "global_attn_every_n_layers", 3, least=1), config.get("layer_types")
        if kinds is None:
            return f"global_every={said}"
        if not isinstance(kinds, list) or len(kinds) != self.whole_number(config, "num_hidden_layers", 22) \
                or not set(map(str, kinds)) <= {"full_attention", "sliding_attention"}:
            raise ConfigError("layer_types must be a list that says full_attention or sliding_attention for each "
                              "layer.")
        full = [layer for layer, kind in enumerate(kinds) if kind == "full_attention"]
        for every in (said, full[1] if len(full) > 1 else len(kinds)):
            if full == list(range(0, len(kinds), every)):
                return f"global_every={every}"
        return f"global_layers='{' '.join(map(str, full))}'"

    def _thetas(self, config: Mapping[str, Any]) -> list[float]:
        """The bases of the local and of the global rotation, from either form of the config."""
        found, thetas = config.get("rope_parameters") or {}, []
        for kind, key, default in (("sliding_attention", "local_rope_theta", 10_000.0),
                                   ("full_attention", "global_rope_theta", 160_000.0)):
            turn = (found.get(kind) or {}) if isinstance(found, dict) else None
            if not isinstance(turn, dict) or turn.get("rope_type", "default") != "default":
                raise ConfigError("rope_parameters is supported only with the rope_type default.")
            theta = turn.get("rope_theta", config.get(key))
            theta = default if theta is None else theta
            if isinstance(theta, bool) or not isinstance(theta, int | float) or not 0 < theta < float("inf"):
                raise ConfigError(f"rope_theta must be a positive number, not {str(theta)[:100]!r}.")
            thetas.append(int(theta) if theta == int(theta) else theta)          # as a person writes it
        return thetas


def _biased(word: str) -> bool:
    return bool(parse_word(word).options.get("bias", True))
