"""The protocol of objectives.

An objective knows the model or models that learn (`params`), how a corpus becomes batches, how a batch is cut into
micro-batches, and the loss of one of them with its gradients. The trainer knows nothing of words or masks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from ..core.context import DropoutKey
from ..core.params import Gradients, Parameters
from ..text.corpora.corpus import Corpus
from ..text.masking import Masking


@dataclass(frozen=True)
class Loss:
    """A summed loss and the number of its terms: sums add up over micro-batches, and are divided once."""

    total: float
    count: int

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0


Losses = dict[str, Loss]                  # by name; the first is the one whose count divides the gradients
Batch = TypeVar("Batch")
Part = TypeVar("Part")
Batch_co = TypeVar("Batch_co", covariant=True)
Batch_contra = TypeVar("Batch_contra", contravariant=True)


class Batches(Protocol[Batch_co]):
    """Anything that gives the batch of a step."""

    def __getitem__(self, step: int, /) -> Batch_co: ...


class Team(Protocol):
    """Threads that share work; see training/workers.py."""

    def map(self, function: Any, items: Any) -> list[Any]: ...


class BatchSettings(Protocol):
    """What an objective reads of a training config."""

    @property
    def max_seq_length(self) -> int: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def micro_batch_size(self) -> int: ...
    @property
    def sequences(self) -> str: ...
    @property
    def bucket(self) -> bool: ...
    @property
    def seed(self) -> int: ...
    @property
    def eval_sequences(self) -> int: ...
    @property
    def gradient_checkpointing(self) -> bool: ...
    def masking(self) -> Masking: ...


class Objective(Protocol[Batch_contra, Part]):
    """What is learned, as a step of training sees it."""

    params: Parameters

    def micro_batches(self, batch: Batch_contra) -> Sequence[Part]:
        """The batch in parts that one thread computes at a time."""

    def add_gradients(self, part: Part, grads: Gradients, key: DropoutKey | None) -> Losses:
        """Forward and backward of one part: adds the gradients of the summed loss. Without key, no dropout."""


class CorpusObjective(Objective[Batch, Part], Protocol[Batch, Part]):
    """What is learned from running text: an objective for the slot `objective`."""

    def batches(self, corpus: Corpus, config: BatchSettings) -> Batches[Batch]:
        """The batches of a run, by step."""

    def heldout(self, corpus: Corpus, config: BatchSettings) -> list[Part]:
        """Micro-batches that nothing is learned from, the same in every run; none if the corpus holds nothing out."""

    def tokens(self, batch: Batch) -> int:
        """Real tokens in the batch."""

    def evaluate(self, parts: Sequence[Part], team: Team) -> dict[str, float]:
        """Figures over held-out parts, without dropout: `eval_loss` and whatever else it measures."""

    def example(self, rng: np.random.Generator) -> Part:
        """A small part with padding, on which the gradient is checked."""

    def feedback(self, record: Mapping[str, Any]) -> None:
        """A line of the log, for objectives that adapt."""
