"""BERT: BertModel, BertForMaskedLM, BertForPreTraining and the classes for tasks.

BertForPreTraining has a next-sentence head on the pooler; its label 0 is "B follows A". The classifier of sequences
reads the pooler too.
"""

from collections.abc import Mapping, Set
from typing import Any

from .layout import HuggingFaceLayout
from .stored import array, linear, norm, table
from .tables import POST_LN, Switch, TaskClass


class BertLayout(HuggingFaceLayout):
    model_type, family, prefix = "bert", "Bert", "bert."
    fixed = POST_LN
    required = {"position_embedding_type": "absolute", "is_decoder": False}
    defaults = {"pad_token_id": 0}
    encoder = {
        **table("token_embeddings", "embeddings.word_embeddings"),
        **table("position_embeddings", "embeddings.position_embeddings"),
        **table("token_type_embeddings", "embeddings.token_type_embeddings"),
        **norm("embedding_ln", "embeddings.LayerNorm"),
        **linear("W_Q", "encoder.layer.{i}.attention.self.query"),
        **linear("W_K", "encoder.layer.{i}.attention.self.key"),
        **linear("W_V", "encoder.layer.{i}.attention.self.value"),
        **linear("W_O", "encoder.layer.{i}.attention.output.dense"),
        **norm("ln1", "encoder.layer.{i}.attention.output.LayerNorm"),
        **linear("W1", "encoder.layer.{i}.intermediate.dense"),
        **linear("W2", "encoder.layer.{i}.output.dense"),
        **norm("ln2", "encoder.layer.{i}.output.LayerNorm"),
        **linear("pooler_W", "pooler.dense"),
    }
    heads = {
        **linear("mlm_transform_W", "cls.predictions.transform.dense"),
        **norm("mlm_transform_ln", "cls.predictions.transform.LayerNorm"),
        **linear("mlm_head_W", "cls.predictions.decoder", bias=False),
        **array("mlm_head_b", "cls.predictions.bias"),
        **linear("sentence_W", "cls.seq_relationship"),
    }
    switches = {"mlm_head": Switch("cls.predictions.bias", "bert"), "pooler": Switch("pooler.dense.weight", "tanh")}
    tied = {"cls.predictions.decoder.weight": "embeddings.word_embeddings.weight",
            "cls.predictions.decoder.bias": "cls.predictions.bias"}
    tasks = {
        "ForSequenceClassification": TaskClass("first_token(pooler=true)", linear("task_W", "classifier")),
        "ForTokenClassification": TaskClass("tokens", linear("task_W", "classifier")),
        "ForQuestionAnswering": TaskClass("span", linear("task_W", "qa_outputs")),
    }
    # checkpoints from TensorFlow call LayerNorm's parameters gamma and beta
    renamed = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}

    def claims(self, config: Mapping[str, Any]) -> bool:
        # old configs have no model_type
        return config.get("model_type", "bert") == "bert" and "num_hidden_layers" in config

    def surplus(self, names: Set[str]) -> Set[str]:
        # a next-sentence head is of no use without its pooler
        return set() if "pooler.dense.weight" in names else {n for n in names if n.startswith("cls.seq_relationship.")}

    def ours(self, config: Mapping[str, Any], names: Set[str]) -> dict[str, Any]:
        related = {"cls.seq_relationship.weight", "pooler.dense.weight"} <= names
        return {"sentence_head": "pooled" if related else "none"}
