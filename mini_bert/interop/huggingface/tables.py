"""The entries of an architecture's tables, and those that most architectures share."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ...core.registry import parse_word
from ...errors import ConfigError
from .stored import Names

ACTIVATIONS = {"gelu": "gelu", "gelu_python": "gelu", "relu": "relu", "gelu_new": "gelu_tanh",
               "gelu_pytorch_tanh": "gelu_tanh", "gelu_fast": "gelu_tanh", "gelu_python_tanh": "gelu_tanh",
               "gelu_accurate": "gelu_tanh", "silu": "silu", "swish": "silu", "tanh": "tanh"}
# the slots of BERT, from which most others differ in one or two
POST_LN = {"embeddings": "sum", "position_embeddings": "learned", "embedding_layernorm": True, "embedding_size": 0,
           "attention": "multi_head", "attention_bias": True, "score_terms": "", "feedforward": "mlp",
           "norm": "layernorm", "block": "post_ln", "stack": "plain", "final_layernorm": False, "mlm_head": "none",
           "pooler": "none", "sentence_head": "none", "scale_residual_init": False}
SIZES = {"num_layers": ("num_hidden_layers", 12), "num_heads": ("num_attention_heads", 12),
         "hidden_size": ("hidden_size", 768), "intermediate_size": ("intermediate_size", 3072),
         "vocab_size": ("vocab_size", 30522), "max_seq_length": ("max_position_embeddings", 512),
         "token_types": ("type_vocab_size", 2), "dropout": ("hidden_dropout_prob", 0.1),
         "attention_dropout": ("attention_probs_dropout_prob", 0.1), "layernorm_eps": ("layer_norm_eps", 1e-12),
         "init_std": ("initializer_range", 0.02)}


# keys of a config that are written anew, or are not true any more of what we save
NOT_KEPT = {"id2label", "label2id", "num_labels", "problem_type", "dtype", "torch_dtype", "quantization_config",
            "auto_map"}


# how transformers calls what a classifier's scores mean: our word for its loss
PROBLEMS = {"single_label_classification": "cross_entropy", "multi_label_classification": "binary_cross_entropy",
            "regression": "squared_error"}


class TaskClass(NamedTuple):
    """A class of transformers with the head of a task: our word for the head, and where its parameters lie."""

    head: str
    tensors: Names


class Switch(NamedTuple):
    """A word of our config that follows from whether a tensor is there."""

    tensor: str
    present: Any
    absent: Any = "none"


def labels_of(config: Mapping[str, Any], source: str) -> tuple[str, ...]:
    """The names of the labels in the order of their numbers, if the config has them."""
    table = config.get("id2label") or {}
    try:
        return tuple(str(table[key]) for key in sorted(table, key=int))
    except (TypeError, ValueError):
        raise ConfigError(f"{source}: id2label must give each number its label.") from None


def our_activation(config: Mapping[str, Any], key: str, default: str) -> str:
    """Our word for an activation of their config."""
    word = config.get(key, default)
    if not isinstance(word, str) or word not in ACTIVATIONS:
        raise ConfigError(f"{key} {str(word)[:100]!r} is not supported; the choices are {', '.join(ACTIVATIONS)}.")
    return ACTIVATIONS[word]


def activation_word(ours: str) -> str:
    """Their first word for an activation of ours."""
    found = next((word for word, known in ACTIVATIONS.items() if known == ours), None)
    if found is None:
        raise ConfigError(f"transformers has no word for the activation {ours}.")
    return found


def untied(head: str) -> str:
    """The word of an MLM head like this one, whose decoder is no copy of the embeddings."""
    word = parse_word(head)
    options = [f"{key}={str(value).lower()}" for key, value in word.options.items()]
    if word.name == "tied":
        return f"plain({', '.join(options)})" if options else "plain"
    return f"bert({', '.join([*options, 'tied=false'])})" if word.name == "bert" else head


def loss_of(config: Mapping[str, Any], outputs: int) -> str:
    """Our word for the loss of a classifier; without a word of theirs, a single score is a number."""
    known = PROBLEMS.get(str(config.get("problem_type")))
    return known or PROBLEMS["regression" if outputs == 1 else "single_label_classification"]


def problem_of(loss: str) -> dict[str, str]:
    """The key of their config for the loss of a classifier; that of classes is the usual one, and not written."""
    word = parse_word(loss)
    known = next((problem for problem, ours in PROBLEMS.items() if ours == word.name), None)
    if known is None or word.arguments or word.options:
        raise ConfigError(f"transformers has no word for the loss {loss}.")
    return {} if known == next(iter(PROBLEMS)) else {"problem_type": known}
