"""ELECTRA: the generator (ElectraForMaskedLM), and the discriminator (ElectraForPreTraining) of replaced tokens.

BERT's layer on embeddings that may be narrower; there is no map between the two where they are of one width. The
generator's head and the classifier of sequences always have GELU.
"""

from collections.abc import Mapping, Set
from typing import Any

from ...core.config import ModelConfig
from ...core.modules.assembly import TaskSpec
from .bert import BertLayout
from .layout import HuggingFaceLayout
from .stored import linear, norm
from .tables import SIZES, TaskClass, our_activation


class ElectraLayout(HuggingFaceLayout):
    model_type, family, prefix = "electra", "Electra", "electra."
    fields = {**SIZES, "hidden_size": ("hidden_size", 256), "num_heads": ("num_attention_heads", 4),
              "intermediate_size": ("intermediate_size", 1024)}
    required = BertLayout.required
    defaults = {"pad_token_id": 0}
    encoder = {
        **{ours: stored for ours, stored in BertLayout.encoder.items() if not ours.startswith("pooler")},
        **linear("embedding_projection_W", "embeddings_project"),
    }
    heads = {
        **linear("mlm_transform_W", "generator_predictions.dense"),
        **norm("mlm_transform_ln", "generator_predictions.LayerNorm"),
        **linear("mlm_head_W", "generator_lm_head"),
        **linear("replaced_transform_W", "discriminator_predictions.dense"),
        **linear("replaced_W", "discriminator_predictions.dense_prediction"),
    }
    tied = {"generator_lm_head.weight": "embeddings.word_embeddings.weight"}
    tasks = {
        "ForSequenceClassification": TaskClass("first_token(transform=gelu)", {
            **linear("task_transform_W", "classifier.dense"), **linear("task_W", "classifier.out_proj")}),
        "ForTokenClassification": TaskClass("tokens", linear("task_W", "classifier")),
        "ForQuestionAnswering": TaskClass("span", linear("task_W", "qa_outputs")),
    }

    def ours(self, config: Mapping[str, Any], names: Set[str]) -> dict[str, Any]:
        E, H = self.whole_number(config, "embedding_size", 128), config.get("hidden_size", 256)
        generates = "bert" if our_activation(config, *self.activation) == "gelu" else "bert(activation=gelu)"
        return {"embedding_size": E if E != H else 0,
                "mlm_head": generates if "generator_lm_head.bias" in names else
                "replaced_tokens" if "discriminator_predictions.dense.weight" in names else "none"}

    def theirs(self, config: ModelConfig) -> dict[str, Any]:
        return {"embedding_size": config.embedding_width}

    def kind_of(self, config: ModelConfig, task: TaskSpec | None) -> str:
        if task is None and config.mlm_head == "replaced_tokens":
            return "ForPreTraining"
        return super().kind_of(config, task)
