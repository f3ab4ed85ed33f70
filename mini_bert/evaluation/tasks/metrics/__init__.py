"""Metrics of predicted classes, sets of labels and numbers, each a word of the slot `metric`. The higher the better."""

from . import classes, labels, numbers

__all__ = ["classes", "labels", "numbers"]
