"""How a new model begins, by the words of a training config."""

from typing import TYPE_CHECKING

import numpy as np

from ..core.config import ModelConfig
from ..core.model import MiniBERT
from ..core.modules.assembly import parameter_specs
from ..core.registry import make
from ..errors import ConfigError
from ..text.corpora.corpus import Corpus
from .inits.normal import Init

if TYPE_CHECKING:
    from .config import TrainingConfig

_BIAS = "mlm_head_b"


def require_suitable(config: ModelConfig, training: "TrainingConfig") -> None:
    """Refuse a start that a model of this config cannot have."""
    init: Init = make("init", training.init)
    init.check(config)
    if training.frequency_bias and _BIAS not in {spec.name for spec in parameter_specs(config)}:
        raise ConfigError("training.frequency_bias needs a model with a bias for each word; its mlm_head, "
                          f"{config.mlm_head}, has none.")


def new_model(config: ModelConfig, training: "TrainingConfig", corpus: Corpus) -> MiniBERT:
    """A model with the parameters that training starts from, drawn by its seed."""
    require_suitable(config, training)
    model = MiniBERT(config, seed=training.seed)
    init: Init = make("init", training.init)
    init.apply(config, model.params, corpus)
    if training.frequency_bias:
        _set_frequency_bias(model, corpus)
    return model


def _set_frequency_bias(model: MiniBERT, corpus: Corpus) -> None:
    """Let the first loss be that of guessing by frequency, which is otherwise what the first steps learn."""
    counts = np.zeros(model.config.vocab_size)
    for tokens in corpus.token_chunks("train"):
        counts += np.bincount(tokens, minlength=len(counts))
    model.params[_BIAS][...] = np.log((counts + 1) / (counts.sum() + len(counts)))
