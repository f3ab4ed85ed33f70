"""RoBERTa, and what has its layout under another name: XLM-RoBERTa and CamemBERT.

BERT's layer, with positions that are numbered from the padding's id on, and heads of its own: the MLM head always has
GELU, the classifier of sequences reads the first token through a layer of its own.
"""

from collections.abc import Mapping, Set
from typing import Any

from ...core.config import ModelConfig
from ...core.registry import parse_word
from .bert import BertLayout
from .layout import HuggingFaceLayout
from .stored import array, linear, norm
from .tables import SIZES, Switch, TaskClass, our_activation

_SIZES = {name: keys for name, keys in SIZES.items() if name != "max_seq_length"}


class RobertaLayout(HuggingFaceLayout):
    model_type, family, prefix = "roberta", "Roberta", "roberta."
    fields = {**_SIZES, "vocab_size": ("vocab_size", 50265)}
    required = BertLayout.required
    encoder = BertLayout.encoder
    heads = {
        **linear("mlm_transform_W", "lm_head.dense"),
        **norm("mlm_transform_ln", "lm_head.layer_norm"),
        **linear("mlm_head_W", "lm_head.decoder", bias=False),
        **array("mlm_head_b", "lm_head.bias"),
    }
    switches = {"pooler": Switch("pooler.dense.weight", "tanh")}
    tied = {"lm_head.decoder.weight": "embeddings.word_embeddings.weight", "lm_head.decoder.bias": "lm_head.bias"}
    tasks = {
        "ForSequenceClassification": TaskClass("first_token(transform=tanh)", {
            **linear("task_transform_W", "classifier.dense"), **linear("task_W", "classifier.out_proj")}),
        "ForTokenClassification": TaskClass("tokens", linear("task_W", "classifier")),
        "ForQuestionAnswering": TaskClass("span", linear("task_W", "qa_outputs")),
    }

    def ours(self, config: Mapping[str, Any], names: Set[str]) -> dict[str, Any]:
        padding = self.whole_number(config, "pad_token_id", 1)
        head = "bert" if our_activation(config, *self.activation) == "gelu" else "bert(activation=gelu)"
        return {"position_embeddings": f"learned(padding={padding})",
                "max_seq_length": self.whole_number(config, "max_position_embeddings", 512) - padding - 1,
                "mlm_head": head if "lm_head.bias" in names else "none"}

    def theirs(self, config: ModelConfig) -> dict[str, Any]:
        padding = parse_word(config.position_embeddings).options["padding"]
        return {"pad_token_id": padding, "max_position_embeddings": config.max_seq_length + padding + 1}


class XLMRobertaLayout(RobertaLayout):
    model_type, family = "xlm-roberta", "XLMRoberta"
    fields = _SIZES


class CamembertLayout(XLMRobertaLayout):
    model_type, family = "camembert", "Camembert"
