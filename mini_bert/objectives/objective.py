"""The protocol of objectives.

An objective knows the model or models that learn (`params`), how a corpus becomes batches, how a batch is cut into
micro-batches, and the losses of one of them with their gradients. The trainer knows nothing of words or masks.

An objective has one loss or several, each with a name, a weight and a number of terms. A step minimises

    total = sum over losses k of  weight_k  sum_k / count_k

where sum_k and count_k are those of the whole batch. How many terms a micro-batch has is known before it is computed
(`counts`), so the trainer can tell every backward the factor of each loss, and one sum of gradients over all
micro-batches serves all losses. A loss of weight 0 is logged and not learned from.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np

from ..core.config import ModelConfig
from ..core.context import DropoutKey
from ..core.model import MiniBERT
from ..core.params import Gradients, Parameters
from ..text.corpora.corpus import Corpus
from ..text.curricula.curriculum import Curriculum
from ..text.masking import BoolArray, Masking


@dataclass(frozen=True)
class PassOptions:
    """How the passes of a step are run: one object for all objectives, so that another option is an edit here alone."""

    micro_batch_size: int = 16            # sequences that one thread computes at a time
    micro_batch_tokens: int = 0           # or as many sequences as have these tokens
    recompute: bool = False               # keep each layer's input alone, and compute the rest again in the backward
    activations: str = "float32"          # or bfloat16: what the layers keep for the backward, in half the memory

    def rows_at_a_time(self, sequences: int, width: int) -> int:
        """The sequences of a micro-batch, of a batch of this shape."""
        if not self.micro_batch_tokens:
            return self.micro_batch_size
        # shorter sequences, more of them; and two parts at least, where one would fit, for two threads
        return max(1, min(self.micro_batch_tokens // width, -(-sequences // 2)))

    @property
    def keeping(self) -> dict[str, Any]:
        """What `model.encode` is told of them: model.encode(ids, mask, **passes.keeping)."""
        return {"recompute": self.recompute, "activations": self.activations}


USUAL_PASSES = PassOptions()


@dataclass(frozen=True)
class Loss:
    """A summed loss and the number of its terms: sums add up over micro-batches, and are divided once."""

    total: float
    count: int

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0


Losses = dict[str, Loss]                  # by name
Batch = TypeVar("Batch")
Part = TypeVar("Part")
Batch_co = TypeVar("Batch_co", covariant=True)
Batch_contra = TypeVar("Batch_contra", contravariant=True)


class Batches(Protocol[Batch_co]):
    """Anything that gives the batch of a step."""

    def __getitem__(self, step: int, /) -> Batch_co: ...


class Team(Protocol):
    """Threads that share work; see workers.py."""

    def map(self, function: Any, items: Any) -> list[Any]: ...


class BatchValues(NamedTuple):
    """What a step sees, of the settings that may change over a run."""

    max_seq_length: int
    batch_size: int
    sequences: str
    masking_rate: float


class BatchSettings(Protocol):
    """What an objective reads of a training config. A string in place of a number is a schedule, which MLMBatches
    takes as it is; `at(1.0)` has the values at the end of a run."""

    @property
    def max_seq_length(self) -> int | str: ...
    @property
    def batch_size(self) -> int | str: ...
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
    def masking(self, ordinary: BoolArray | None = None) -> Masking: ...
    def ordering(self) -> Curriculum | None: ...
    def at(self, share: float) -> BatchValues: ...


class Objective(Protocol[Batch_contra, Part]):
    """What is learned, as a step of training sees it."""

    params: Parameters                    # what learns: of one model, or of several (joint_params.py)
    main: str                             # the name of the loss that is logged as `loss`, by which runs are compared
    losses: Mapping[str, float]           # the weight of each loss, by name

    def micro_batches(self, batch: Batch_contra) -> Sequence[Part]:
        """The batch in parts that one thread computes at a time."""

    def counts(self, part: Part) -> Mapping[str, int]:
        """The number of terms of each loss in a part; a loss that is left out has none there."""

    def add_gradients(self, part: Part, grads: Gradients, key: DropoutKey | None,
                      factors: Mapping[str, float]) -> Mapping[str, Any]:
        """Forward and backward of one part: adds the gradients of the sum over losses of factor x summed loss, and
        returns the summed losses themselves. Without key, no dropout.

        What it returns under a name that is no loss, a number or an array, is added up over the parts of a step."""


class CorpusObjective(Objective[Batch, Part], Protocol[Batch, Part]):
    """What is learned from running text: an objective for the slot `objective`, made from (model, passes).

    A class that inherits from this one has defaults for the last methods, from `main_parts` on. A step must depend on
    the objective's state, the seed and the step's number alone: what an objective learns from `feedback` is its state.
    """

    needs: ClassVar[Mapping[str, Any]] = {}       # settings of a model that can learn it, where not every model can
    shares_pass: ClassVar[bool] = False           # can others read the same pass? (one_pass.py; it is not inherited)
    of_words: ClassVar[bool] = True               # is the main loss that of predicting words, as a unigram can?
    masks: ClassVar[bool] = False                 # does it choose tokens by the config's masking?

    @staticmethod
    def example_settings(config: ModelConfig, dtype: Any, seed: int) -> dict[str, Any]:
        """Options without which it cannot be made, such as a teacher, for a gradient check of a model of this
        config."""
        return {}

    def batches(self, corpus: Corpus, config: BatchSettings) -> Batches[Batch]:
        """The batches of a run, by step."""

    def heldout(self, corpus: Corpus, config: BatchSettings) -> list[Part]:
        """Micro-batches that nothing is learned from, the same in every run; none if the corpus holds nothing out."""

    def tokens(self, batch: Batch) -> int:
        """Real tokens in the batch."""

    def evaluate(self, parts: Sequence[Part], team: Team) -> dict[str, float]:
        """Figures over held-out parts, without dropout: the mean of each loss under its name, and what else it
        measures."""

    def evaluable(self, batch: Batch) -> Sequence[Part]:
        """A batch of the run in parts that `evaluate` takes, which are those of `micro_batches` where it measures as it
        learns."""
        return self.micro_batches(batch)

    def example(self, rng: np.random.Generator) -> Batch:
        """A small batch with padding, on which the gradient is checked."""

    def main_parts(self, parts: Sequence[Part]) -> Sequence[Any]:
        """The held-out parts on which the main loss is measured."""
        return parts

    def prepare(self, corpus: Corpus, config: BatchSettings, team: Team, say: Callable[[str], None]) -> None:
        """Called once before `batches`, for what takes long and several threads can share, such as asking a teacher;
        `say` hears sentences about it. `batches` and `heldout` must work without it, too."""
        return None

    def floats(self, sequences: int, masking_rate: float) -> int:
        """Numbers in memory at the peak of a backward of `sequences` full sequences; 0 if that is not known."""
        return 0

    def feedback(self, step: int, losses: Losses, figures: Mapping[str, Any]) -> None:
        """Called after each step that was taken, the first is 1, with its losses, with what else `add_gradients` has
        added up, and with the figures of `evaluate` if it was followed by an evaluation: for objectives that adapt.
        `step` is a Step, which knows the share of the run that is done."""
        return None

    def noted(self) -> Mapping[str, float]:
        """Numbers about its state for the log."""
        return {}

    def state(self) -> dict[str, Any]:
        """What a resumed run needs to go on as if it had not been stopped: arrays, and values that JSON can hold."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take the state that `state` gave when a checkpoint was written."""
        return None

    def companions(self) -> Mapping[str, MiniBERT]:
        """Further models that are trained, by name; they are saved next to `best` and `final`."""
        return {}
