"""Tasks of GLUE that have their own metric: CoLA, MRPC and STS-B."""

from ....core.registry import register
from .classes import Classification, Pairs
from .numbers import Numbers


@register("task", "cola")
class CoLA(Classification):
    """Is the sentence grammatical? Most are, so the correlation of answers counts, not their share."""

    usual_metrics = ("mcc", "accuracy")


@register("task", "mrpc")
class MRPC(Pairs):
    """Do two sentences say the same?"""

    usual_metrics = ("f1", "accuracy")


@register("task", "stsb")
class STSB(Numbers):
    """How similar are two sentences, from 0 to 5?"""

    usual_metrics = ("pearson", "spearman")
