"""Planted bugs, to be found by their symptoms."""

from .bug import Bug
from .causes import CAUSES
from .diagnostics import MEANS, Look, Means, healthy
from .planted import BUGS

__all__ = ["BUGS", "CAUSES", "MEANS", "Bug", "Look", "Means", "healthy"]
