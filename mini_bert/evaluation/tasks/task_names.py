"""The tasks that a model can be fine-tuned for, and their metrics.

    classification   one label per text or pair of texts               accuracy, macro F1
    pair             the same, but the data must be pairs
    ner              one BIO label per word                            F1 of entities, accuracy of words
    qa               the span of a text that answers a question        F1 and exact match of SQuAD
"""

from .entity_task import Entities
from .questions import Questions
from .task import Task
from .texts import Classification, Pairs

__all__ = ["TASKS", "Classification", "Entities", "Pairs", "Questions", "Task"]

TASKS: dict[str, type[Classification] | type[Entities] | type[Questions]] = {
    "sst2": Classification, "classification": Classification, "pair": Pairs, "ner": Entities, "qa": Questions}
