"""Mini-BERT: BERT in pure NumPy, from the first matrix product to the last gradient.

    model = mini_bert.pipeline("mini")
    model.fill_mask("They met for the first [MASK] in Paris.")

Each name is imported when it is first used, so importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .version import __version__

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
    from .api.classifier import MiniBertClassifier
    from .api.finetune import finetune
    from .api.pipeline import Pipeline, pipeline
    from .api.vectorizer import MiniBertVectorizer
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
        DataError,
        InputError,
        MiniBertError,
        NumericalError,
        ParameterError,
        VocabularyError,
    )
    from .explorer.notebook import explore
    from .factory import ModelFactory, load
    from .fit import fit
    from .interop.exports import export
    from .interop.quantising import quantise
    from .plugins import import_file
    from .text.corpora.corpus import Corpus
    from .text.generator import MLMDataGenerator
    from .text.masking import mask_tokens
    from .text.opening import load_tokenizer, register_tokenizer
    from .text.wordpiece.tokenizer import WordPieceTokenizer
    from .training.config import TrainingConfig
    from .training.loop import Listener
    from .training.optimisers.adamw import AdamW
    from .training.progress import ProgressBar
    from .training.trainer import Trainer
    from .workers import keep_freed_memory

__all__ = ["AdamW", "AdvancedMiniBERT", "AdvancedOptimizer", "CheckpointError", "ConfigError", "Corpus", "CorpusError",
           "DataError", "InputError", "Listener", "MLMDataGenerator", "MathematicalAnalyzer", "MathematicalExplorer",
           "MiniBERT", "MiniBERTGradients", "MiniBertClassifier", "MiniBertError", "MiniBertVectorizer",
           "MiniTransformerLayer", "ModelConfig", "ModelFactory", "NumericalError", "ParameterError", "Pipeline",
           "ProgressBar", "Trainer", "TrainingAnalyzer", "TrainingConfig", "VocabularyError", "WordPieceTokenizer",
           "__version__", "add_auxiliary_tasks", "compute_layer_wise_learning_rates", "explore", "export", "finetune",
           "fit", "gradient_check", "implement_adaptive_masking", "implement_curriculum_learning", "import_file",
           "keep_freed_memory", "load", "load_config", "load_preset", "load_tokenizer", "mask_tokens",
           "mlm_cross_entropy", "pipeline", "preset_names", "quantise", "register", "register_tokenizer"]

# name -> its module, or module:name where that differs
_PLACES = {name: module for module, names in {
    "advanced": ("AdvancedMiniBERT", "AdvancedOptimizer", "add_auxiliary_tasks", "implement_adaptive_masking",
                 "implement_curriculum_learning"),
    "analysis.dynamics.sensitivity": ("compute_layer_wise_learning_rates",),
    "analysis.dynamics.training_analyzer": ("TrainingAnalyzer",),
    "analysis.explorer": ("MathematicalExplorer",),
    "analysis.passes.components": ("MathematicalAnalyzer",),
    "api.classifier": ("MiniBertClassifier",),
    "api.finetune": ("finetune",),
    "api.pipeline": ("Pipeline", "pipeline"),
    "api.vectorizer": ("MiniBertVectorizer",),
    "configs": ("load_config", "load_preset", "preset_names"),
    "core.config": ("ModelConfig",),
    "core.gradcheck": ("gradient_check",),
    "core.gradients": ("MiniBERTGradients", "mlm_cross_entropy"),
    "core.model": ("MiniBERT",),
    "core.modules.blocks.post_ln:PostLNLayer": ("MiniTransformerLayer",),
    "core.registry": ("register",),
    "errors": ("CheckpointError", "ConfigError", "CorpusError", "DataError", "InputError", "MiniBertError",
               "NumericalError", "ParameterError", "VocabularyError"),
    "explorer.notebook": ("explore",),
    "factory": ("ModelFactory", "load"),
    "interop.exports": ("export",),
    "interop.quantising": ("quantise",),
    "plugins": ("import_file",),
    "text.corpora.corpus": ("Corpus",),
    "text.generator": ("MLMDataGenerator",),
    "text.masking": ("mask_tokens",),
    "text.opening": ("load_tokenizer", "register_tokenizer"),
    "text.wordpiece.tokenizer": ("WordPieceTokenizer",),
    "training.config": ("TrainingConfig",),
    "training.loop": ("Listener",),
    "training.optimisers.adamw": ("AdamW",),
    "training.progress": ("ProgressBar",),
    "training.trainer": ("Trainer",),
    "workers": ("keep_freed_memory",),
}.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "fit":                     # the package itself, which can be called
        return import_module(".fit", __name__)
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, there = _PLACES[name].partition(":")
    found = globals()[name] = getattr(import_module(f".{module}", __name__), there or name)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
