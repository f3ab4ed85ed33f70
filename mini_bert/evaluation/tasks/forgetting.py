"""Catastrophic forgetting: how much of its earlier abilities a model loses by fine-tuning.

Masked language modelling needs no labels, so it can be measured on any text before and after: fine-tuning does not
change the MLM head, but it changes the encoder below it. For an earlier task with a head of its own, that head is put
on the new encoder.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...core.model import MiniBERT
from ...core.task_model import TaskModel
from ...errors import InputError
from ...text.corpora.corpus import Corpus
from ..masked_lm import MaskedReport, evaluate_corpus
from ..result import Result

Measure = Callable[[MiniBERT], float]


@dataclass(frozen=True)
class Forgetting(Result):
    """Scores before and after; `lost` is positive where the score fell."""

    also = ("lost",)

    before: dict[str, float]
    after: dict[str, float]

    @property
    def lost(self) -> dict[str, float]:
        return {name: self.before[name] - self.after[name] for name in self.before}


def measure_catastrophic_forgetting(model: MiniBERT, old_tasks: Mapping[str, Measure],
                                    new_tasks: Sequence[Callable[[MiniBERT], MiniBERT]]) -> Forgetting:
    """Measure each old task, train on each new task, and measure again.

    An old task is a function from a model to a score, higher is better; a new task returns the trained model.
    """
    if not old_tasks:
        raise InputError("There is no old task to measure.")
    before = {name: measure(model) for name, measure in old_tasks.items()}
    for train in new_tasks:
        model = train(model)
    return Forgetting(before, {name: measure(model) for name, measure in old_tasks.items()})


def masked_before_and_after(before: MiniBERT, after: TaskModel, corpus: Corpus, *, split: str = "train",
                            length: int = 64, threads: int = 0) -> tuple[MaskedReport, MaskedReport]:
    """Masked loss and accuracy of a model before and after fine-tuning."""
    if not before.modules.predicts_words:
        raise InputError("This model has no MLM head, so its masked accuracy cannot be measured.")
    return (evaluate_corpus(before, corpus, split=split, length=length, threads=threads),
            evaluate_corpus(after.encoder(), corpus, split=split, length=length, threads=threads))
