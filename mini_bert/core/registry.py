"""The one table from a config's word to the class or functions that it names.

To add a variant: write its file, add its word here, and ship a preset that uses it.
"""

from difflib import get_close_matches
from typing import Any

from ..errors import ConfigError
from .config import ModelConfig
from .modules.blocks.layer import PostLNLayer, PreLNLayer
from .modules.embeddings.embeddings import LearnedPositions, NoPositions
from .modules.feedforward.mlp import Activation
from .modules.heads.language import BertHead, NoHead, NoPooler, PlainHead, TanhPooler
from .ops.gelu import gelu_backward, gelu_forward
from .ops.gelu_tanh import gelu_tanh_backward, gelu_tanh_forward
from .ops.relu import relu_backward, relu_forward

SLOTS: dict[str, dict[str, Any]] = {
    "position_embeddings": {"learned": LearnedPositions, "none": NoPositions},
    "block": {"post_ln": PostLNLayer, "pre_ln": PreLNLayer},
    "activation": {"relu": Activation(relu_forward, relu_backward),
                   "gelu": Activation(gelu_forward, gelu_backward, extra=1),
                   "gelu_tanh": Activation(gelu_tanh_forward, gelu_tanh_backward, extra=2)},
    "mlm_head": {"plain": PlainHead, "bert": BertHead, "none": NoHead},
    "pooler": {"none": NoPooler, "tanh": TanhPooler},
}


def check_words(config: ModelConfig) -> None:
    """Refuse a word that names nothing."""
    for slot, choices in SLOTS.items():
        word = getattr(config, slot)
        if word not in choices:
            near = get_close_matches(word[:100], choices, n=1, cutoff=0.0)[0]
            raise ConfigError(f"{slot}: {word[:100]!r} is not a choice; the nearest is {near!r}, and all are "
                              f"{', '.join(choices)}.")


def fill(config: ModelConfig, slot: str) -> Any:
    """What the config's word for this slot names."""
    check_words(config)
    return SLOTS[slot][getattr(config, slot)]
