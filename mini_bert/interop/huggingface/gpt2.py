"""GPT-2: pre-LN, causal, with a final norm and the embeddings as decoder, which has no bias.

Its linear maps are stored (in, out), as ours, with queries, keys and values in one. Files on the hub lack the prefix.
Whether there is a language model's head only the class's name says: the head has no tensor of its own.
"""

from collections.abc import Mapping, Set
from typing import Any

from ...core.config import ModelConfig
from ...core.modules.assembly import TaskSpec
from ...core.registry import parse_word
from .layout import HuggingFaceLayout
from .stored import conv, linear, norm, packed, table
from .tables import POST_LN, TaskClass


class GPT2Layout(HuggingFaceLayout):
    model_type, family, prefix = "gpt2", "GPT2", "transformer."
    fields = {"num_layers": ("n_layer", 12), "num_heads": ("n_head", 12), "hidden_size": ("n_embd", 768),
              "vocab_size": ("vocab_size", 50257), "max_seq_length": ("n_positions", 1024),
              "dropout": ("resid_pdrop", 0.1), "attention_dropout": ("attn_pdrop", 0.1),
              "layernorm_eps": ("layer_norm_epsilon", 1e-5), "init_std": ("initializer_range", 0.02)}
    fixed = {**POST_LN, "token_types": 0, "embedding_layernorm": False, "score_terms": "causal", "block": "pre_ln",
             "final_layernorm": True, "scale_residual_init": True}
    activation = ("activation_function", "gelu_new")
    required = {"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False, "add_cross_attention": False}
    encoder = {
        **table("token_embeddings", "wte"),
        **table("position_embeddings", "wpe"),
        **norm("ln1", "h.{i}.ln_1"),
        **packed("W_Q W_K W_V", "h.{i}.attn.c_attn", transposed=False),
        **conv("W_O", "h.{i}.attn.c_proj"),
        **norm("ln2", "h.{i}.ln_2"),
        **conv("W1", "h.{i}.mlp.c_fc"),
        **conv("W2", "h.{i}.mlp.c_proj"),
        **norm("final_ln", "ln_f"),
    }
    heads = linear("mlm_head_W", "lm_head", bias=False)
    tied = {"lm_head.weight": "wte.weight"}
    ignored = r"h\.\d+\.attn\.(bias|masked_bias)|multiple_choice_head\..*"       # a causal mask; the other of two heads
    language_model = "LMHeadModel"
    tasks = {
        "ForSequenceClassification": TaskClass("last_token", linear("task_W", "score", bias=False)),
        "ForTokenClassification": TaskClass("tokens", linear("task_W", "classifier")),
        "ForQuestionAnswering": TaskClass("span", linear("task_W", "qa_outputs")),
    }

    def ours(self, config: Mapping[str, Any], names: Set[str]) -> dict[str, Any]:
        kind = self.kind_in(config)
        inner = config.get("n_inner")
        return {"intermediate_size": 4 * self.whole_number(config, "n_embd", 768) if inner is None else inner,
                "mlm_head": "none" if kind == "Model" or kind in self.tasks else "tied(bias=false)"}

    def theirs(self, config: ModelConfig) -> dict[str, Any]:
        return {"n_inner": config.intermediate_size, "embd_pdrop": config.dropout}

    def task_head(self, kind: str, config: Mapping[str, Any]) -> str:
        head = super().task_head(kind, config)
        if head != "last_token":
            return head
        padding = config.get("pad_token_id")          # the last token is the last one of another id than this
        return "last_token(bias=false)" if padding is None else f"last_token(bias=false, padding={padding})"

    def task_keys(self, config: ModelConfig, task: TaskSpec) -> dict[str, Any]:
        padding = parse_word(task.head).options.get("padding")
        return {} if padding is None else {"pad_token_id": padding}
