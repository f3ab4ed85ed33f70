"""Mini-BERT: BERT in pure NumPy, from the first matrix product to the last gradient."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .configs import load_config, load_preset, preset_names
from .core.config import ModelConfig
from .core.gradcheck import gradient_check
from .core.gradients import MiniBERTGradients, mlm_cross_entropy
from .core.model import MiniBERT
from .core.modules.blocks.post_ln import PostLNLayer as MiniTransformerLayer
from .core.registry import register
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
from .interop.hub import register_hub
from .interop.huggingface import register_layouts
from .text.masking import mask_tokens
from .version import __version__

__all__ = ["AdamW", "AdvancedMiniBERT", "AdvancedOptimizer", "CheckpointError", "ConfigError", "Corpus", "CorpusError",
           "InputError", "MLMDataGenerator", "MathematicalAnalyzer", "MathematicalExplorer", "MiniBERT",
           "MiniBERTGradients", "MiniBertError", "MiniTransformerLayer", "ModelConfig", "ModelFactory",
           "NumericalError", "ParameterError", "Trainer", "TrainingAnalyzer", "TrainingConfig", "VocabularyError",
           "WordPieceTokenizer", "__version__", "add_auxiliary_tasks", "compute_layer_wise_learning_rates",
           "gradient_check", "implement_adaptive_masking", "implement_curriculum_learning", "import_file",
           "keep_freed_memory", "load", "load_config", "load_preset", "load_tokenizer", "mask_tokens",
           "mlm_cross_entropy", "preset_names", "register", "register_tokenizer"]

if TYPE_CHECKING:
    from .advanced import (
        AdvancedMiniBERT,
        AdvancedOptimizer,
        add_auxiliary_tasks,
        implement_adaptive_masking,
        implement_curriculum_learning,
    )
    from .analysis.dynamics.sensitivity import compute_layer_wise_learning_rates
    from .analysis.dynamics.training_analyzer import TrainingAnalyzer
    from .analysis.explorer import MathematicalExplorer
    from .analysis.passes.components import MathematicalAnalyzer
    from .plugins import import_file
    from .text.corpora.corpus import Corpus
    from .text.generator import MLMDataGenerator
    from .text.opening import load_tokenizer, register_tokenizer
    from .text.wordpiece.tokenizer import WordPieceTokenizer
    from .training.config import TrainingConfig
    from .training.optimisers.adamw import AdamW
    from .training.trainer import Trainer
    from .training.workers import keep_freed_memory

# loaded when first asked for: they bring processes and archives along, and importing stays fast
_LATER = {"AdvancedMiniBERT": "advanced", "AdvancedOptimizer": "advanced", "add_auxiliary_tasks": "advanced",
          "implement_adaptive_masking": "advanced", "implement_curriculum_learning": "advanced",
          "compute_layer_wise_learning_rates": "analysis.dynamics.sensitivity",
          "AdamW": "training.optimisers.adamw", "Corpus": "text.corpora.corpus", "MLMDataGenerator": "text.generator",
          "MathematicalAnalyzer": "analysis.passes.components", "MathematicalExplorer": "analysis.explorer",
          "Trainer": "training.trainer", "keep_freed_memory": "training.workers",
          "TrainingAnalyzer": "analysis.dynamics.training_analyzer",
          "TrainingConfig": "training.config", "WordPieceTokenizer": "text.wordpiece.tokenizer",
          "import_file": "plugins", "load_tokenizer": "text.opening", "register_tokenizer": "text.opening"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LATER[name]}", __name__), name)


register_layouts()                    # core knows no other format than its own
register_hub()                        # nor does text know of datasets
