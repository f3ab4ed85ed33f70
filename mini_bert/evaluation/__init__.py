"""Numbers about a model: predictions, representations, probes, fine-tuning, zero-shot tests, and all of them together.

Arrays that explain a model are in `analysis`.
"""

from importlib import import_module
from typing import Any

# Imported on first use, so that one name does not import the others.
_LAZY = {name: module for module, names in {
    "metrics": ("compute_gradient_norm", "compute_perplexity", "masked_accuracy"),
    "probes.probing": ("ProbeData", "ProbeOptions", "analyze_linguistic_probes", "probe_syntactic_knowledge"),
    "representations.composition": ("Contrast", "Phrase", "measure_compositional_understanding"),
    "representations.geometry": ("analyze_representation_geometry", "compute_attention_entropy",
                                 "compute_effective_dimensionality", "compute_effective_rank",
                                 "compute_layer_similarity", "compute_representation_geometry",
                                 "compute_token_diversity"),
    "representations.similarity": ("probe_semantic_knowledge",),
    "representations.stability": ("measure_representation_stability",),
    "tasks.forgetting": ("measure_catastrophic_forgetting",),
    "zero_shot.facts": ("probe_factual_knowledge",),
}.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LAZY[name]}", __name__), name)
