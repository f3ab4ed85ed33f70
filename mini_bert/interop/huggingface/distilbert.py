"""DistilBERT: BERT's layer without token types and pooler, under names of its own. The norms' eps is fixed."""

from .layout import HuggingFaceLayout
from .stored import linear, norm, table
from .tables import POST_LN, SIZES, Switch, TaskClass


class DistilBertLayout(HuggingFaceLayout):
    model_type, family, prefix = "distilbert", "DistilBert", "distilbert."
    fields = {"num_layers": ("n_layers", 6), "num_heads": ("n_heads", 12), "hidden_size": ("dim", 768),
              "intermediate_size": ("hidden_dim", 3072), "dropout": ("dropout", 0.1),
              "attention_dropout": ("attention_dropout", 0.1),
              **{name: SIZES[name] for name in ("vocab_size", "max_seq_length", "init_std")}}
    fixed = {**POST_LN, "token_types": 0, "layernorm_eps": 1e-12}
    activation = ("activation", "gelu")
    defaults = {"pad_token_id": 0}
    encoder = {
        **table("token_embeddings", "embeddings.word_embeddings"),
        **table("position_embeddings", "embeddings.position_embeddings"),
        **norm("embedding_ln", "embeddings.LayerNorm"),
        **linear("W_Q", "transformer.layer.{i}.attention.q_lin"),
        **linear("W_K", "transformer.layer.{i}.attention.k_lin"),
        **linear("W_V", "transformer.layer.{i}.attention.v_lin"),
        **linear("W_O", "transformer.layer.{i}.attention.out_lin"),
        **norm("ln1", "transformer.layer.{i}.sa_layer_norm"),
        **linear("W1", "transformer.layer.{i}.ffn.lin1"),
        **linear("W2", "transformer.layer.{i}.ffn.lin2"),
        **norm("ln2", "transformer.layer.{i}.output_layer_norm"),
    }
    heads = {
        **linear("mlm_transform_W", "vocab_transform"),
        **norm("mlm_transform_ln", "vocab_layer_norm"),
        **linear("mlm_head_W", "vocab_projector"),
    }
    switches = {"mlm_head": Switch("vocab_projector.bias", "bert")}
    tied = {"vocab_projector.weight": "embeddings.word_embeddings.weight"}
    tasks = {
        "ForSequenceClassification": TaskClass("first_token(transform=relu)", {
            **linear("task_transform_W", "pre_classifier"), **linear("task_W", "classifier")}),
        "ForTokenClassification": TaskClass("tokens", linear("task_W", "classifier")),
        "ForQuestionAnswering": TaskClass("span", linear("task_W", "qa_outputs")),
    }
