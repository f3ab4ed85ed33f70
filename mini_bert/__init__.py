"""Mini-BERT: BERT in pure NumPy, from the first matrix product to the last gradient."""

from .configs import load_config, load_preset, preset_names
from .core.block import TransformerLayer as MiniTransformerLayer
from .core.config import ModelConfig
from .core.gradcheck import gradient_check
from .core.gradients import MiniBERTGradients, mlm_cross_entropy
from .core.memory import keep_freed_memory
from .core.model import MiniBERT
from .core.storage import register_layout
from .errors import (
    CheckpointError,
    ConfigError,
    CorpusError,
    InputError,
    MiniBertError,
    NumericalError,
    ParameterError,
    VocabularyError,
)
from .factory import ModelFactory, load
from .interop.huggingface import BertLayout
from .text.masking import mask_tokens
from .version import __version__

__all__ = [
    "CheckpointError",
    "ConfigError",
    "CorpusError",
    "InputError",
    "MiniBERT",
    "MiniBERTGradients",
    "MiniBertError",
    "MiniTransformerLayer",
    "ModelConfig",
    "ModelFactory",
    "NumericalError",
    "ParameterError",
    "VocabularyError",
    "__version__",
    "gradient_check",
    "keep_freed_memory",
    "load",
    "load_config",
    "load_preset",
    "mask_tokens",
    "mlm_cross_entropy",
    "preset_names",
]

register_layout(BertLayout())         # core knows no other format than its own
