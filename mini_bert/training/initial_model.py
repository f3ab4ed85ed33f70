"""How a new model begins, by the words of a training config."""

from typing import TYPE_CHECKING

import numpy as np

from ..core.assembly import parameter_specs
from ..core.config import ModelConfig
from ..core.model import MiniBERT
from ..core.params import Parameters
from ..errors import ConfigError
from ..text.corpora.corpus import Corpus
from .inits.local import look_local

if TYPE_CHECKING:
    from .config import TrainingConfig


def _as_drawn(config: ModelConfig, params: Parameters) -> None:
    """Every matrix and embedding from N(0, init_std)."""


INITS = {"normal": _as_drawn, "local": look_local}


def require_suitable(config: ModelConfig, training: "TrainingConfig") -> None:
    """Refuse a beginning that a model of this config cannot have."""
    names = {spec.name for spec in parameter_specs(config)}
    if INITS[training.init] is look_local and ("position_embeddings" not in names or config.head_size < 2):
        raise ConfigError(f"training.init: {training.init} needs model.position_embeddings: learned, and two features "
                          "a head or more; set training.init=normal.")
    if "mlm_head_b" not in names:
        raise ConfigError("Training needs a model with a head for masked language modelling; model.mlm_head is "
                          f"{config.mlm_head}.")


def new_model(config: ModelConfig, training: "TrainingConfig", corpus: Corpus) -> MiniBERT:
    """A model with the parameters that training starts from, drawn by its seed."""
    require_suitable(config, training)
    model = MiniBERT(config, seed=training.seed)
    INITS[training.init](config, model.params)
    if training.frequency_bias:
        _set_frequency_bias(model, corpus)
    return model


def _set_frequency_bias(model: MiniBERT, corpus: Corpus) -> None:
    """Let the first loss be that of guessing by frequency, which is otherwise what the first steps learn."""
    counts = np.zeros(model.config.vocab_size)
    for tokens in corpus.token_chunks("train"):
        counts += np.bincount(tokens, minlength=len(counts))
    model.params["mlm_head_b"][...] = np.log((counts + 1) / (counts.sum() + len(counts)))
