"""Learning from a teacher, another model: its predictions, its hidden states, its sentence vectors, its scores of
labels. A teacher learns nothing, and runs without dropout."""

from . import distil, sentence_vectors

__all__ = ["distil", "sentence_vectors"]
