"""The threads of training and evaluation: see mini_bert/workers.py, which inference shares."""

from ..workers import Item, Result, Workers, available_cores, keep_freed_memory, workers

__all__ = ["Item", "Result", "Workers", "available_cores", "keep_freed_memory", "workers"]
