"""Figures of arrays with matplotlib (the extra `viz`), in one style: PNG, SVG, PDF, and inline in notebooks.

Nothing here knows a model: `mini_bert.analysis` and `mini_bert.evaluation` compute what is drawn.
"""

from .curves import (
    plot_gradient_flow,
    plot_loss_components,
    plot_probe_accuracy,
    plot_spectrum,
    plot_training_curves,
    plot_weight_evolution,
)
from .matrices import (
    plot_attention_grid,
    plot_confusion_matrix,
    plot_layer_similarity,
    visualize_attention_patterns,
)
from .profile import plot_profile
from .style import Picture
from .surfaces import plot_embedding_projection, plot_loss_landscape, project
from .timeline import plot_timeline

__all__ = ["Picture", "plot_attention_grid", "plot_confusion_matrix", "plot_embedding_projection",
           "plot_gradient_flow", "plot_layer_similarity", "plot_loss_components", "plot_loss_landscape",
           "plot_probe_accuracy", "plot_profile", "plot_spectrum", "plot_timeline", "plot_training_curves",
           "plot_weight_evolution", "project", "visualize_attention_patterns"]
