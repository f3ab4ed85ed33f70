"""DeBERTa: DebertaModel, DebertaForMaskedLM and the classes for tasks.

Queries, keys and values are one tensor `in_proj`, whose rows go head by head: those of head 0's query, key and value,
then of head 1's. The classifier of sequences has a layer of its own on the first token. A head for words may have its
old or its new names. The enhanced decoder of the paper is in no class of transformers; its positions are left aside.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...core.arrays import Array
from ...core.config import ModelConfig
from ...core.modules.assembly import TaskSpec
from ...core.registry import Word, parse_word, parse_words
from ...core.storage.model_files import Opened, Tensors
from ...errors import ConfigError
from .layout import HuggingFaceLayout
from .stored import Names, Shape, Stored, array, linear, norm, table
from .tables import POST_LN, SIZES, Switch, TaskClass, activation_word, our_activation

_LAYER = "encoder.layer.{i}.attention.self."


@dataclass(frozen=True)
class HeadByHead(Stored):
    """One of the three matrices (H, H) in a tensor (A * 3 * d_k, H)."""

    parts: int = 3

    def shape(self, ours: Shape, config: ModelConfig) -> Shape:
        return self.parts * config.hidden_size, config.hidden_size

    def unpack(self, tensor: Array, config: ModelConfig) -> Array:
        by_head = tensor.reshape(config.num_heads, self.parts, config.head_size, -1)
        return by_head[:, self.part].reshape(config.hidden_size, -1).T

    def pack(self, ours: Sequence[Array], config: ModelConfig) -> Array:
        by_head = [W.T.reshape(config.num_heads, config.head_size, -1) for W in ours]
        return np.stack(by_head, axis=1).reshape(self.shape((), config))


class DebertaLayout(HuggingFaceLayout):
    model_type, family, prefix = "deberta", "Deberta", "deberta."
    fields = {**{ours: place for ours, place in SIZES.items() if ours != "token_types"},
              "vocab_size": ("vocab_size", 50265), "layernorm_eps": ("layer_norm_eps", 1e-7)}
    fixed = {**POST_LN, "attention": "multi_head(key_bias=false)"}
    required: ClassVar[Mapping[str, Any]] = {"talking_head": False}
    defaults, constants = {"pad_token_id": 0}, {"legacy": True}
    encoder: ClassVar[Names] = {
        **table("token_embeddings", "embeddings.word_embeddings"),
        **table("position_embeddings", "embeddings.position_embeddings"),
        **table("token_type_embeddings", "embeddings.token_type_embeddings"),
        **linear("embedding_projection_W", "embeddings.embed_proj", bias=False),
        **norm("embedding_ln", "embeddings.LayerNorm"),
        **table("relative_embeddings", "encoder.rel_embeddings"),
        **{f"W_{letter}_{{i}}": HeadByHead(_LAYER + "in_proj.weight", part=part) for part, letter in enumerate("QKV")},
        **array("b_Q", _LAYER + "q_bias"), **array("b_V", _LAYER + "v_bias"),
        **linear("W_KR", _LAYER + "pos_proj", bias=False), **linear("W_QR", _LAYER + "pos_q_proj"),
        **linear("W_O", "encoder.layer.{i}.attention.output.dense"),
        **norm("ln1", "encoder.layer.{i}.attention.output.LayerNorm"),
        **linear("W1", "encoder.layer.{i}.intermediate.dense"),
        **linear("W2", "encoder.layer.{i}.output.dense"),
        **norm("ln2", "encoder.layer.{i}.output.LayerNorm"),
    }
    heads = {
        **linear("mlm_transform_W", "cls.predictions.transform.dense"),
        **norm("mlm_transform_ln", "cls.predictions.transform.LayerNorm"),
        **linear("mlm_head_W", "cls.predictions.decoder", bias=False),
        **array("mlm_head_b", "cls.predictions.bias"),
    }
    switches = {"mlm_head": Switch("cls.predictions.bias", "bert")}
    tied = {"cls.predictions.decoder.weight": "embeddings.word_embeddings.weight",
            "cls.predictions.decoder.bias": "cls.predictions.bias"}
    tasks = {
        "ForSequenceClassification": TaskClass("first_token(transform=gelu)", {
            **linear("task_transform_W", "pooler.dense"), **linear("task_W", "classifier")}),
        "ForTokenClassification": TaskClass("tokens", linear("task_W", "classifier")),
        "ForQuestionAnswering": TaskClass("span", linear("task_W", "qa_outputs")),
    }
    # the head for words of `legacy: false`; that for replaced tokens, with which v3 was trained, has no class
    renamed = {"lm_predictions.lm_head.bias": "cls.predictions.bias",
               "lm_predictions.lm_head.": "cls.predictions.transform."}
    ignored = r"embeddings\.position_ids|mask_predictions\..*"

    def read(self, config: Mapping[str, Any], tensors: Tensors, source: str) -> Opened:
        tensors = Tensors({name: tensor for name, tensor in tensors.items()
                           if not name.endswith(self._unused(config))})
        if not config.get("legacy", True):                        # its head always reads the embeddings
            config = {**config, "tie_word_embeddings": True}
        return super().read(config, tensors, source)

    def _unused(self, config: Mapping[str, Any]) -> tuple[str, ...]:
        """How the names of tensors end that a model of this config does not read."""
        return () if config.get("position_biased_input", True) else ("embeddings.position_embeddings.weight",)

    def ours(self, config: Mapping[str, Any], names: Set[str]) -> dict[str, Any]:
        H = config.get("hidden_size", self.fields["hidden_size"][1])
        E = config.get("embedding_size", H)
        if config.get("attention_head_size", None) not in (None, H // config.get("num_attention_heads", H)):
            raise ConfigError(f"attention_head_size {config['attention_head_size']} is not supported; heads share the "
                              "hidden size.")
        return {"token_types": config.get("type_vocab_size", 0), "embedding_size": 0 if E == H else E,
                "embeddings": "sum" if E == H else "sum(project_first=true)",
                "position_embeddings": "learned" if config.get("position_biased_input", True) else "none",
                "score_terms": self._score_terms(config)}

    def theirs(self, config: ModelConfig) -> dict[str, Any]:
        terms = parse_words(config.score_terms, "score_terms")
        return {"type_vocab_size": config.token_types, "embedding_size": config.embedding_width,
                "position_biased_input": config.position_embeddings != "none", "relative_attention": bool(terms),
                **(self._described(terms[0]) if terms else self._without_terms())}

    def _without_terms(self) -> dict[str, Any]:
        """Their keys where attention has no term of ours."""
        return {"pos_att_type": []}

    def _score_terms(self, config: Mapping[str, Any]) -> str:
        types = config.get("pos_att_type") or []
        types = [part.strip() for part in types.lower().split("|")] if isinstance(types, str) else types
        known = isinstance(types, list) and len(set(map(str, types))) == len(types) and set(types) <= {"c2p", "p2c"}
        relative = bool(config.get("relative_attention", False))
        if not known or relative != bool(types):
            raise ConfigError(f"pos_att_type {str(types)[:100]!r} with relative_attention {str(relative).lower()} is "
                              "not supported: relative attention has c2p, p2c or both, and other attention has none.")
        return str(Word("disentangled", options=self._options(config, types))) if relative else ""

    def _options(self, config: Mapping[str, Any], types: list[str]) -> dict[str, Any]:
        """The options of our term, in the notation of configs: those that are not the defaults."""
        reach = config.get("max_relative_positions", -1)
        reach = reach if isinstance(reach, int) and reach >= 1 else config.get("max_position_embeddings", 512)
        return {"reach": reach, **{part: False for part in ("c2p", "p2c") if part not in types}}

    def _described(self, term: Word) -> dict[str, Any]:
        """Their keys for our term."""
        if term.name != "disentangled":
            raise ConfigError(f"{self.model_type} has no score term {term.name}.")
        return {"max_relative_positions": term.options.get("reach", 64),
                "pos_att_type": [part for part in ("c2p", "p2c") if term.options.get(part, True)]}

    def task_head(self, kind: str, config: Mapping[str, Any]) -> str:
        if kind != "ForSequenceClassification":
            return super().task_head(kind, config)
        return f"first_token(transform={our_activation(config, 'pooler_hidden_act', 'gelu')})"

    def task_keys(self, config: ModelConfig, task: TaskSpec) -> dict[str, Any]:
        act = parse_word(task.head).options.get("transform")
        return {} if act is None else {"pooler_hidden_act": activation_word(str(act))}
