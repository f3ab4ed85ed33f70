"""From ids to the input of the first layer."""

from . import positions

__all__ = ["positions"]
