"""The tasks that a model can be fine-tuned for, each with its data, its figures and its baselines.

    classification   a label for a text, or for a pair of texts        accuracy, macro F1
    pair             the same, and the data must have pairs
    ner              a BIO label for each word                         F1 of entities, accuracy of words
    qa               a stretch of a text that answers a question       F1 and exact match, as SQuAD has them
"""

from .entity_task import Entities
from .questions import Questions
from .task import Task
from .texts import Classification, Pairs

__all__ = ["TASKS", "Classification", "Entities", "Pairs", "Questions", "Task"]

TASKS: dict[str, type[Classification] | type[Entities] | type[Questions]] = {
    "sst2": Classification, "classification": Classification, "pair": Pairs, "ner": Entities, "qa": Questions}
