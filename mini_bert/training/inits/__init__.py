"""How the parameters of a new model begin, beyond the draw that each parameter's spec names."""

from . import local, normal, words

__all__ = ["local", "normal", "words"]
