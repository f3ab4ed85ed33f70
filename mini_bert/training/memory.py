"""The memory of a training step: predicting it, and taking the same pages again.

The prediction counts the arrays that live at the peak, early in the backward: the parameters, their
gradients, the optimiser's two moments, the activations in the cache, and one layer's gradients on the
way. It is good to about a fifth; the interpreter and the libraries, some 40 MB, come on top.
"""

import ctypes
import sys
from dataclasses import dataclass
from math import prod

from ..core.config import ModelConfig
from ..core.module import Sizes
from ..core.modules.assembly import Modules, parameter_specs

_LARGE = 1 << 23


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


def training_memory(config: ModelConfig, batch_size: int, itemsize: int = 4, *,
                    masking_rate: float = 0.15) -> TrainingMemory:
    """Of one MLM step with full sequences and AdamW."""
    modules = Modules(config)
    numbers = sum(prod(spec.shape) for spec in parameter_specs(config)) * itemsize
    tokens = batch_size * config.max_seq_length
    masked = max(1, round(masking_rate * tokens))
    kept = modules.floats(Sizes(tokens, masked, config.max_seq_length))
    # gradients on their way through one layer
    inside = tokens * (5 * config.hidden_size + 2 * config.intermediate_size)
    activations = kept + max(masked * config.vocab_size, inside)  # the logits become their gradient in place
    return TrainingMemory(numbers, numbers, 2 * numbers, activations * itemsize)


def keep_freed_memory() -> bool:
    """Ask the C library to keep what is freed for the next allocation. Returns whether it agreed.

    A training step allocates the same large arrays as the step before it. By default glibc hands them
    back to the system when they are freed, and taking fresh pages costs a fault every 4 KiB: a tenth to
    a quarter of a step. Call it once before training. It holds for the whole process; other C libraries
    than glibc are left alone.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    ctypes.CDLL(None).malloc_trim(0)                  # what was freed before, while a model was made, goes
    mmap_threshold, trim_threshold = -3, -1           # M_MMAP_THRESHOLD, M_TRIM_THRESHOLD
    return bool(mallopt(mmap_threshold, _LARGE) and mallopt(trim_threshold, 2**31 - 1))
