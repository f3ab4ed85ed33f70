"""How a task learns from the scores of its head, and what the scores mean: classes, several labels, numbers."""

from . import classes, numbers, several_labels

__all__ = ["classes", "numbers", "several_labels"]
