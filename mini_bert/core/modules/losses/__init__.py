"""What the scores of a task's head are learned from, and what they mean: classes, several labels, numbers."""

from . import classes, numbers, several_labels

__all__ = ["classes", "numbers", "several_labels"]
