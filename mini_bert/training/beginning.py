"""How a new model begins, by the words of a training config."""

from typing import TYPE_CHECKING

import numpy as np

from ..core.config import ModelConfig
from ..core.initialisation import look_local
from ..core.model import MiniBERT
from ..core.params import Parameters
from ..errors import ConfigError
from ..text.corpus import Corpus

if TYPE_CHECKING:
    from .config import TrainingConfig


def _as_drawn(config: ModelConfig, params: Parameters) -> None:
    """Every matrix and embedding from N(0, init_std)."""


INITS = {"normal": _as_drawn, "local": look_local}


def new_model(config: ModelConfig, training: "TrainingConfig", corpus: Corpus) -> MiniBERT:
    """A model with the parameters that training starts from, drawn by its seed."""
    model = MiniBERT(config, seed=training.seed)
    INITS[training.init](config, model.params)
    if training.frequency_bias:
        _set_frequency_bias(model, corpus)
    return model


def _set_frequency_bias(model: MiniBERT, corpus: Corpus) -> None:
    """Let the first loss be that of guessing by frequency, which is otherwise what the first steps learn."""
    if "mlm_head_b" not in model.params:
        raise ConfigError("training.frequency_bias needs a model with an MLM head.")
    counts = np.zeros(model.config.vocab_size)
    found = corpus.piece_counts()
    counts[: len(found)] = found
    model.params["mlm_head_b"][...] = np.log((counts + 1) / (counts.sum() + len(counts)))
