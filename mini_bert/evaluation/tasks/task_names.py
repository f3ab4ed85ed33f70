"""The tasks that a model can be fine-tuned for, and their metrics.

    classification   one label per text or pair of texts               accuracy, macro F1
    pair             the same, but the data must be pairs
    ner              one BIO label per word                            F1 of entities, accuracy of words
    qa               the span of a text that answers a question        F1 and exact match of SQuAD

A task is a word of the slot `task`; a user's own file can register others.
"""

from .entity_task import Entities
from .questions import Questions
from .task import Task
from .texts import Classification, Pairs

__all__ = ["Classification", "Entities", "Pairs", "Questions", "Task"]
