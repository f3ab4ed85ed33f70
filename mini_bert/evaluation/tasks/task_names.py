"""The tasks that a model can be fine-tuned for, and their metrics.

    classification   one label per text or pair of texts               accuracy, macro F1
    pair             the same, but the data must be pairs
    multilabel       any number of labels per text or pair             F1 of all labels together, of each, exact sets
    regression       a number per text or pair                         Pearson's and Spearman's correlation, R squared
    cola, mrpc, stsb the tasks of GLUE that have metrics of their own  Matthews' correlation; F1; Pearson, Spearman
    ner              one BIO label per word                            F1 of entities, accuracy of words
    qa               the span of a text that answers a question        F1 and exact match of SQuAD

A task is a word of the slot `task`; a user's own file can register others.
"""

from .entity_task import Entities
from .questions import Questions
from .task import Task
from .texts import Classification, Numbers, Pairs, SeveralLabels

__all__ = ["Classification", "Entities", "Numbers", "Pairs", "Questions", "SeveralLabels", "Task"]
