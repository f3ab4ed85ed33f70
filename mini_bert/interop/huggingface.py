"""Hugging Face's BERT layout: the same arrays under other names, with linear weights transposed to (out, in).

Loads the directories of BertModel, BertForMaskedLM, BertForPreTraining and of sentence-transformers models built on
them. Models with BERT's architecture are saved in this layout, so that transformers can load them.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..core.config import ModelConfig
from ..core.params import Parameters
from ..core.storage.model_files import Tensors
from ..errors import CheckpointError, ConfigError

# our config field: (their key, their default)
_FIELDS: dict[str, tuple[str, Any]] = {
    "num_layers": ("num_hidden_layers", 12),
    "num_heads": ("num_attention_heads", 12),
    "hidden_size": ("hidden_size", 768),
    "intermediate_size": ("intermediate_size", 3072),
    "vocab_size": ("vocab_size", 30522),
    "max_seq_length": ("max_position_embeddings", 512),
    "token_types": ("type_vocab_size", 2),
    "dropout": ("hidden_dropout_prob", 0.1),
    "attention_dropout": ("attention_probs_dropout_prob", 0.1),
    "layernorm_eps": ("layer_norm_eps", 1e-12),
    "init_std": ("initializer_range", 0.02),
}
_ACTIVATIONS = {"gelu": "gelu", "gelu_python": "gelu", "relu": "relu", "gelu_new": "gelu_tanh",
                "gelu_pytorch_tanh": "gelu_tanh"}
# our MLM head: their class, and the prefix of its encoder's names
_CLASSES = {"bert": ("BertForMaskedLM", "bert."), "none": ("BertModel", "")}
# the settings of BERT's architecture
_BERT = {"position_embeddings": "learned", "embedding_layernorm": True, "attention_bias": True,
         "attention": "multi_head", "score_terms": "", "feedforward": "mlp", "norm": "layernorm", "block": "post_ln",
         "stack": "plain", "final_layernorm": False, "scale_residual_init": False}

_ENCODER = {
    "token_embeddings": "embeddings.word_embeddings.weight",
    "position_embeddings": "embeddings.position_embeddings.weight",
    "token_type_embeddings": "embeddings.token_type_embeddings.weight",
    "embedding_ln_gamma": "embeddings.LayerNorm.weight",
    "embedding_ln_beta": "embeddings.LayerNorm.bias",
    "pooler_W": "pooler.dense.weight",
    "pooler_b": "pooler.dense.bias",
}
_LAYER = {
    "W_Q": "attention.self.query.weight", "b_Q": "attention.self.query.bias",
    "W_K": "attention.self.key.weight", "b_K": "attention.self.key.bias",
    "W_V": "attention.self.value.weight", "b_V": "attention.self.value.bias",
    "W_O": "attention.output.dense.weight", "b_O": "attention.output.dense.bias",
    "ln1_gamma": "attention.output.LayerNorm.weight", "ln1_beta": "attention.output.LayerNorm.bias",
    "W1": "intermediate.dense.weight", "b1": "intermediate.dense.bias",
    "W2": "output.dense.weight", "b2": "output.dense.bias",
    "ln2_gamma": "output.LayerNorm.weight", "ln2_beta": "output.LayerNorm.bias",
}
_HEAD = {
    "mlm_transform_W": "cls.predictions.transform.dense.weight",
    "mlm_transform_b": "cls.predictions.transform.dense.bias",
    "mlm_transform_ln_gamma": "cls.predictions.transform.LayerNorm.weight",
    "mlm_transform_ln_beta": "cls.predictions.transform.LayerNorm.bias",
    "mlm_head_b": "cls.predictions.bias",
}
# the linear weights, stored as (out, in)
_TRANSPOSED = re.compile(r"W_[QKVO]_\d+|W[12]_\d+|mlm_transform_W|pooler_W")
# not our parameters: a buffer of position numbers, and the next-sentence classifier
_IGNORED = re.compile(r"(bert\.)?embeddings\.position_ids|cls\.seq_relationship\..*")


def _names(config: ModelConfig) -> Iterator[tuple[str, str]]:
    """(our name, their name) of every parameter that a model with this config can have."""
    prefix = _CLASSES[config.mlm_head][1]
    for ours, theirs in _ENCODER.items():
        yield ours, prefix + theirs
    for layer in range(config.num_layers):
        for ours, theirs in _LAYER.items():
            yield f"{ours}_{layer}", f"{prefix}encoder.layer.{layer}.{theirs}"
    yield from _HEAD.items()


class BertLayout:
    metadata = {"format": "pt"}           # transformers requires it

    def claims(self, config: Mapping[str, Any]) -> bool:
        # old configs have no model_type
        return config.get("model_type", "bert") == "bert" and "num_hidden_layers" in config

    def read(self, config: Mapping[str, Any], tensors: Tensors, source: str) -> tuple[ModelConfig, Tensors]:
        kept = [name for name in tensors if not _IGNORED.fullmatch(name)]
        # the encoder's prefix depends on the class that saved it, not on whether there is a head
        bare = {_modern(name).removeprefix("bert."): name for name in kept}
        if len(bare) < len(kept):
            twice = next(name for name in kept if bare[_modern(name).removeprefix("bert.")] != name)
            raise CheckpointError(f"{source} has {twice} twice, under its old and its new name.")
        task = [name for name in kept if name.startswith(("classifier.", "qa_outputs."))]
        if task:
            raise CheckpointError(f"{source} has a task head ({task[0]}); only encoders and masked language models are "
                                  "supported.")
        named = {name: tensors[spelled] for name, spelled in bare.items()}
        _drop_tied(named, source)
        ours = self._read_config(config, named, source)
        result = {}
        for name, theirs in _names(ours):
            tensor = named.pop(theirs.removeprefix("bert."), None)
            if tensor is not None:
                result[name] = tensor.T if _TRANSPOSED.fullmatch(name) else tensor
        return ours, result | {bare.get(name, name): tensor for name, tensor in named.items()}

    def _read_config(self, config: Mapping[str, Any], tensors: Tensors, source: str) -> ModelConfig:
        word = config.get("hidden_act", "gelu")
        if not isinstance(word, str) or word not in _ACTIVATIONS:
            raise ConfigError(f"{source}: hidden_act {str(word)[:100]!r} is not supported; the choices are "
                              f"{', '.join(_ACTIVATIONS)}.")
        if config.get("position_embedding_type", "absolute") != "absolute" or config.get("is_decoder"):
            raise ConfigError(f"{source}: only BERT encoders with absolute positions are supported.")
        sizes = {ours: config.get(theirs, default) for ours, (theirs, default) in _FIELDS.items()}
        return ModelConfig.from_dict({
            **sizes, **_BERT, "activation": _ACTIVATIONS[word],
            "mlm_head": "bert" if any(name.startswith("cls.predictions.") for name in tensors) else "none",
            "pooler": "tanh" if any(name.startswith("pooler.") for name in tensors) else "none",
        }, source)

    def on_disk(self, config: ModelConfig, name: str, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        return dict(_names(config))[name], shape[::-1] if _TRANSPOSED.fullmatch(name) else shape

    def fits(self, config: ModelConfig) -> bool:
        slots = config.to_dict()
        return (all(slots[key] == value for key, value in _BERT.items()) and config.token_types > 0
                and config.mlm_head in _CLASSES and config.activation in _ACTIVATIONS.values())

    def write(self, config: ModelConfig, params: Parameters) -> tuple[dict[str, Any], Tensors]:
        theirs = {their: getattr(config, our) for our, (their, _) in _FIELDS.items()}
        activation = next(word for word, ours in _ACTIVATIONS.items() if ours == config.activation)
        description = {"model_type": "bert", "architectures": [_CLASSES[config.mlm_head][0]],
                       "hidden_act": activation, "position_embedding_type": "absolute", "pad_token_id": 0,
                       "tie_word_embeddings": True, "dtype": str(params.flat.dtype), **theirs}
        return description, {theirs: params[ours].T if _TRANSPOSED.fullmatch(ours) else params[ours]
                             for ours, theirs in _names(config) if ours in params}


def _modern(name: str) -> str:
    """The present name of a tensor: checkpoints from TensorFlow call LayerNorm's parameters gamma and beta."""
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def _drop_tied(tensors: Tensors, source: str) -> None:
    """Remove the copies of tied tensors; refuse a copy that differs from the original."""
    for copy, original in (("cls.predictions.decoder.weight", "embeddings.word_embeddings.weight"),
                           ("cls.predictions.decoder.bias", "cls.predictions.bias")):
        if copy not in tensors:
            continue
        if original not in tensors:
            tensors[original] = tensors[copy]
        elif not np.array_equal(tensors[copy], tensors[original]):
            raise CheckpointError(f"{source}: {copy} differs from {original}; an MLM head that is not tied to the "
                                  "embeddings is not supported.")
        del tensors[copy]
