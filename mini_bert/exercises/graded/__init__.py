"""The exercises in the order of learning, a file each: inputs to try an answer on, hints, typical mistakes."""

from importlib import import_module

from ..exercise import Exercise

ORDER = ("linear", "relu", "gelu", "softmax", "layernorm", "attention", "embedding", "cross_entropy", "dropout",
         "residual", "block", "adamw", "masking")


def exercise(name: str) -> Exercise:
    """The exercise of this name."""
    made: Exercise = import_module(f"{__name__}.{name}").EXERCISE
    return made
