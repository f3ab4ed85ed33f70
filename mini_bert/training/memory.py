"""Predicting the memory of a training step.

The prediction counts the arrays that live at the peak, early in the backward: the parameters, their gradients, what the
optimiser keeps, the activations in the cache, and one layer's gradients on the way. Each part of a model, each
objective and each optimiser says what it takes. It is good to about a fifth; the interpreter and the libraries, some
40 MB, come on top.
"""

from dataclasses import dataclass

from .. import objectives  # noqa: F401  (they fill the registry)
from ..core.config import ModelConfig
from ..core.model import MiniBERT
from ..objectives.making import objective_from
from . import optimisers  # noqa: F401  (they fill the registry)
from .optimisers.making import optimiser_bytes


@dataclass(frozen=True)
class TrainingMemory:
    """Bytes by purpose."""

    parameters: int
    gradients: int
    optimiser: int
    activations: int

    @property
    def total(self) -> int:
        return self.parameters + self.gradients + self.optimiser + self.activations


def training_memory(config: ModelConfig, batch_size: int, itemsize: int = 4, *, masking_rate: float = 0.15,
                    objective: str = "masked", optimiser: str = "adamw", moments: str = "float32") -> TrainingMemory:
    """Of one step on full sequences, `batch_size` of them computed at once, with the words of a training config."""
    learned = objective_from(objective, MiniBERT(config, seed=None))      # zeros that are never touched take no memory
    numbers = learned.params.flat.size
    return TrainingMemory(numbers * itemsize, numbers * itemsize,
                          optimiser_bytes(optimiser, numbers, itemsize, moments),
                          learned.floats(batch_size, masking_rate) * itemsize)
