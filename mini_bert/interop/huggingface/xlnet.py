"""XLNet: XLNetModel, XLNetLMHeadModel and the classes for tasks.

Projections are stored by head, (H, A, d_k). `attn_type: uni` is the causal form, Transformer-XL's attention. XLNet has
no limit of length; ours is written as max_seq_length, which transformers carries along. Its classifier of sequences
reads the last token, [CLS], so padding belongs to the left: ours reads the last real token.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from ...core.arrays import Array
from ...core.config import ModelConfig
from ...core.modules.assembly import TaskSpec
from ...core.registry import parse_word, parse_words
from ...errors import ConfigError
from .layout import HuggingFaceLayout
from .stored import Names, Shape, Stored, array, linear, norm, table
from .tables import POST_LN, Switch, TaskClass, activation_word, our_activation

LENGTH = 4096                 # of a sequence, where the config does not say
SEGMENTS = 5                  # A, B, and those of [CLS], [SEP] and padding
# cls_index, without an index, is the last token; their mean has padding in it
_SUMMARIES = {"last": "last_token", "first": "first_token", "cls_index": "last_token"}


@dataclass(frozen=True)
class ByHead(Stored):
    """A matrix (H, A d_k) of ours as (H, A, d_k); that of the output, `transposed`, by its inputs."""

    def shape(self, ours: Shape, config: ModelConfig) -> Shape:
        return config.hidden_size, config.num_heads, config.head_size

    def unpack(self, tensor: Array, config: ModelConfig) -> Array:
        return super().unpack(tensor.reshape(config.hidden_size, config.hidden_size), config)

    def pack(self, ours: Sequence[Array], config: ModelConfig) -> Array:
        return super().pack(ours, config).reshape(self.shape((), config))


@dataclass(frozen=True)
class Vector(Stored):
    """A vector (H,) of ours as (1, 1, H)."""

    def shape(self, ours: Shape, config: ModelConfig) -> Shape:
        return 1, 1, *ours

    def unpack(self, tensor: Array, config: ModelConfig) -> Array:
        return tensor.reshape(-1)

    def pack(self, ours: Sequence[Array], config: ModelConfig) -> Array:
        return ours[0].reshape(1, 1, -1)


def _by_head(letter: str) -> Names:
    return {f"W_{letter}_{{i}}": ByHead(f"layer.{{i}}.rel_attn.{letter.lower()}", transposed=letter == "O")}


class XLNetLayout(HuggingFaceLayout):
    model_type, family, prefix = "xlnet", "XLNet", "transformer."
    fields = {"num_layers": ("n_layer", 24), "num_heads": ("n_head", 16), "hidden_size": ("d_model", 1024),
              "intermediate_size": ("d_inner", 4096), "vocab_size": ("vocab_size", 32000),
              "max_seq_length": ("max_seq_length", LENGTH), "dropout": ("dropout", 0.1),
              "attention_dropout": ("dropout", 0.1), "layernorm_eps": ("layer_norm_eps", 1e-12),
              "init_std": ("initializer_range", 0.02)}
    fixed = {**POST_LN, "embeddings": "sum(types=false)", "token_types": SEGMENTS, "position_embeddings": "none",
             "embedding_layernorm": False, "attention_bias": False, "stack": "two_stream"}
    activation = ("ff_activation", "gelu")
    required = {"bi_data": False, "same_length": False}
    language_model = "LMHeadModel"
    encoder = {
        **table("token_embeddings", "word_embedding"),
        "query_embedding": Vector("mask_emb"),
        **_by_head("Q"), **_by_head("K"), **_by_head("V"), **_by_head("O"), **_by_head("R"),
        **array("content_bias", "layer.{i}.rel_attn.r_w_bias"),
        **array("distance_bias", "layer.{i}.rel_attn.r_r_bias"),
        **array("segment_bias", "layer.{i}.rel_attn.r_s_bias"),
        **array("segment_keys", "layer.{i}.rel_attn.seg_embed"),
        **norm("ln1", "layer.{i}.rel_attn.layer_norm"),
        **linear("W1", "layer.{i}.ff.layer_1"),
        **linear("W2", "layer.{i}.ff.layer_2"),
        **norm("ln2", "layer.{i}.ff.layer_norm"),
    }
    heads = linear("mlm_head_W", "lm_loss")
    switches = {"mlm_head": Switch("lm_loss.bias", "tied")}
    tied = {"lm_loss.weight": "word_embedding.weight"}
    tasks = {
        "ForSequenceClassification": TaskClass("last_token(transform=tanh)", {
            **linear("task_transform_W", "sequence_summary.summary"), **linear("task_W", "logits_proj")}),
        "ForTokenClassification": TaskClass("tokens", linear("task_W", "classifier")),
        "ForQuestionAnsweringSimple": TaskClass("span", linear("task_W", "qa_outputs")),
    }

    def ours(self, config: Mapping[str, Any], names: Set[str]) -> dict[str, Any]:
        attention, clamp = config.get("attn_type", "bi"), config.get("clamp_len", -1)
        if attention not in ("bi", "uni"):
            raise ConfigError(f"attn_type {str(attention)[:100]!r} is not supported; the choices are bi and uni.")
        if self.whole_number(config, "d_model", 1024) % 2:
            raise ConfigError(f"d_model must be even, not {config['d_model']}: half of it is sines, half cosines.")
        relative = f"relative(clamp={clamp})" if isinstance(clamp, int) and clamp > 0 else "relative"
        return {"score_terms": f"segments + {relative}" + (" + causal" if attention == "uni" else "")}

    def theirs(self, config: ModelConfig) -> dict[str, Any]:
        words = {word.name: word for word in parse_words(config.score_terms, "score_terms")}
        clamp = words["relative"].options.get("clamp", 0) if "relative" in words else 0
        return {"attn_type": "uni" if "causal" in words else "bi", "clamp_len": clamp or -1}

    def task_head(self, kind: str, config: Mapping[str, Any]) -> str:
        if kind != "ForSequenceClassification":
            return super().task_head(kind, config)
        summary = config.get("summary_type", "last")
        if summary not in _SUMMARIES or not config.get("summary_use_proj", True):
            raise ConfigError(f"a classifier with summary_type {str(summary)[:100]!r} is opened if that is "
                              f"{', '.join(_SUMMARIES)}, with a projection (summary_use_proj).")
        return f"{_SUMMARIES[summary]}(transform={our_activation(config, 'summary_activation', 'tanh')})"

    def task_keys(self, config: ModelConfig, task: TaskSpec) -> dict[str, Any]:
        head = parse_word(task.head)
        theirs = next((theirs for theirs, ours in _SUMMARIES.items() if ours == head.name), None)
        act = head.options.get("transform")
        return {} if theirs is None or act is None else {"summary_type": theirs,
                                                         "summary_activation": activation_word(str(act))}
