"""Arrays that explain a model and its training: what it computes, how it learns, and what is wrong with a run."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["Diagnosis", "Finding", "MathematicalAnalyzer", "MathematicalExplorer", "TrainingAnalyzer",
           "analyze_gradient_flow", "analyze_gradient_magnitudes_by_layer", "analyze_learning_rate_sensitivity",
           "analyze_loss_landscape", "analyze_weight_evolution", "compare_layer_representations",
           "compute_layer_wise_learning_rates", "compute_stable_rank", "detect_mode_collapse", "examine",
           "explain_cell", "explain_prediction", "explore_attention_heads", "gradient_noise_scale",
           "gradient_times_input", "head_importance_by_gradient", "head_importance_by_masking", "integrated_gradients",
           "lens_of_text", "measure_head_importance", "measure_timeline", "patch_activations", "patch_texts",
           "query_key_terms", "relation_heads", "representation_evolution", "step_through_backward_pass",
           "step_through_forward_pass", "track_weight_changes", "verify_entry", "weight_spectrum"]

if TYPE_CHECKING:
    from .attention.heads import explore_attention_heads, query_key_terms
    from .attention.importance import head_importance_by_gradient, head_importance_by_masking, measure_head_importance
    from .attention.relations import relation_heads
    from .doctor.doctor import Diagnosis, examine
    from .doctor.symptoms import Finding
    from .dynamics.gradient_flow import analyze_gradient_flow, analyze_gradient_magnitudes_by_layer
    from .dynamics.gradient_noise import gradient_noise_scale
    from .dynamics.loss_landscape import analyze_loss_landscape
    from .dynamics.sensitivity import (
        analyze_learning_rate_sensitivity,
        compute_layer_wise_learning_rates,
        detect_mode_collapse,
    )
    from .dynamics.training_analyzer import TrainingAnalyzer
    from .dynamics.weight_evolution import (
        analyze_weight_evolution,
        compute_stable_rank,
        representation_evolution,
        track_weight_changes,
        weight_spectrum,
    )
    from .explorer import MathematicalExplorer, compare_layer_representations
    from .passes.backward_steps import step_through_backward_pass, verify_entry
    from .passes.components import MathematicalAnalyzer
    from .passes.forward_steps import explain_cell, step_through_forward_pass
    from .passes.logit_lens import lens_of_text
    from .passes.patching import patch_activations, patch_texts
    from .passes.saliency import explain_prediction, gradient_times_input, integrated_gradients
    from .timeline.timeline import measure_timeline

# Imported on first use, so that one name does not import the others.
_LAZY = {name: module for module, names in {
    "attention.heads": ("explore_attention_heads", "query_key_terms"),
    "attention.relations": ("relation_heads",),
    "passes.backward_steps": ("step_through_backward_pass", "verify_entry"),
    "passes.components": ("MathematicalAnalyzer",),
    "doctor.doctor": ("Diagnosis", "examine"),
    "explorer": ("MathematicalExplorer", "compare_layer_representations"),
    "passes.forward_steps": ("explain_cell", "step_through_forward_pass"),
    "dynamics.gradient_flow": ("analyze_gradient_flow", "analyze_gradient_magnitudes_by_layer"),
    "dynamics.gradient_noise": ("gradient_noise_scale",),
    "attention.importance": ("head_importance_by_gradient", "head_importance_by_masking", "measure_head_importance"),
    "passes.logit_lens": ("lens_of_text",),
    "dynamics.loss_landscape": ("analyze_loss_landscape",),
    "passes.patching": ("patch_activations", "patch_texts"),
    "passes.saliency": ("explain_prediction", "gradient_times_input", "integrated_gradients"),
    "dynamics.sensitivity": ("analyze_learning_rate_sensitivity", "compute_layer_wise_learning_rates",
                             "detect_mode_collapse"),
    "doctor.symptoms": ("Finding",),
    "timeline.timeline": ("measure_timeline",),
    "dynamics.training_analyzer": ("TrainingAnalyzer",),
    "dynamics.weight_evolution": ("analyze_weight_evolution", "compute_stable_rank", "representation_evolution",
                                  "track_weight_changes", "weight_spectrum"),
}.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LAZY[name]}", __name__), name)
