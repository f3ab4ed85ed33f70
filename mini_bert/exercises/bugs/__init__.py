"""Bugs that are planted in the library, to be found by their symptoms."""

from .bug import Bug
from .causes import CAUSES
from .diagnostics import DIAGNOSTICS, Diagnostic, Reading, healthy_reading
from .planted import BUGS

__all__ = ["BUGS", "CAUSES", "DIAGNOSTICS", "Bug", "Diagnostic", "Reading", "healthy_reading"]
