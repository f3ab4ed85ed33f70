"""Tasks whose answer belongs to a whole text, or to a pair of texts: one file for each kind of answer, and the baseline
that they share."""

from . import glue
from .classes import Classification, Pairs
from .numbers import Numbers
from .several_labels import SeveralLabels

__all__ = ["Classification", "Numbers", "Pairs", "SeveralLabels", "glue"]
