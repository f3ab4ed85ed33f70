"""The exercises in the order of learning, one file each: test inputs, hints and typical mistakes."""

from importlib import import_module

from ..exercise import Exercise

ORDER = ("linear", "relu", "gelu", "softmax", "layernorm", "attention", "embedding", "cross_entropy", "dropout",
         "residual", "block", "adamw", "masking")


def exercise(name: str) -> Exercise:
    """The exercise with this name."""
    made: Exercise = import_module(f"{__name__}.{name}").EXERCISE
    return made
