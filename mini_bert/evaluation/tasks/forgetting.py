"""What fine-tuning costs: what a model could do before, and can do no more.

Masked language modelling needs no labels, so it can be measured on any text before and after: the MLM head is still
there, and takes no part in fine-tuning, but the encoder below it has moved. Of tasks with heads of their own, the head
of the old task is put on the new encoder.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.model import MiniBERT
from ...core.task_model import TaskModel
from ...errors import InputError
from ...text.corpora.corpus import Corpus
from ..masked_lm import MaskedReport, evaluate_corpus

Measure = Callable[[MiniBERT], float]


@dataclass(frozen=True)
class Forgetting:
    """A figure before and after; `lost` is positive where something was lost."""

    before: dict[str, float]
    after: dict[str, float]

    @property
    def lost(self) -> dict[str, float]:
        return {name: self.before[name] - self.after[name] for name in self.before}

    def to_dict(self) -> dict[str, Any]:
        return {"before": self.before, "after": self.after, "lost": self.lost}


def measure_catastrophic_forgetting(model: MiniBERT, old_tasks: Mapping[str, Measure],
                                    new_tasks: Sequence[Callable[[MiniBERT], MiniBERT]]) -> Forgetting:
    """Measure each old task, let each new one train the model, and measure again.

    An old task is a function from a model to a figure, higher being better; a new one returns the model that it made.
    """
    if not old_tasks:
        raise InputError("There is no old task whose loss could be measured.")
    before = {name: measure(model) for name, measure in old_tasks.items()}
    for train in new_tasks:
        model = train(model)
    return Forgetting(before, {name: measure(model) for name, measure in old_tasks.items()})


def masked_before_and_after(before: MiniBERT, after: TaskModel, corpus: Corpus, *, split: str = "train",
                            length: int = 64, threads: int = 0) -> tuple[MaskedReport, MaskedReport]:
    """Masked loss and accuracy of the model that fine-tuning began with, and of what it became."""
    if "mlm_head_b" not in before.params:
        raise InputError("This model has no MLM head, so it cannot forget how to fill masks.")
    return (evaluate_corpus(before, corpus, split=split, length=length, threads=threads),
            evaluate_corpus(after.encoder(), corpus, split=split, length=length, threads=threads))
