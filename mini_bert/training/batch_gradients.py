"""The loss of a batch and its gradients, by all threads together."""

from collections.abc import Callable, Collection, Iterable
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from ..core.arrays import Array, IntArray
from ..core.gradients import add_mlm_gradients
from ..core.model import DropoutKey, MiniBERT
from ..core.ops.cross_entropy import cross_entropy_forward
from ..core.params import Gradients, Parameters
from ..text.batches import MLMBatch
from .gradient_sum import GradientSum
from .workers import Workers

Part = TypeVar("Part")


class BatchLoss(NamedTuple):
    """The summed loss over masked positions, or whatever else is predicted, and their number."""

    total: float
    masked: int

    @property
    def mean(self) -> float:
        return self.total / self.masked if self.masked else 0.0


class ParallelGradients(Generic[Part]):
    """Computes the parts of a batch, each by one thread; `gradients` then holds those of the summed loss.

    `loss` takes a part, a place for its gradients and a key for dropout, and returns the summed loss and the count;
    to the parameters named in `unused` it adds nothing.
    """

    def __init__(self, params: Parameters, workers: Workers,
                 loss: Callable[[Part, Gradients, DropoutKey], tuple[float, int]], unused: Collection[str] = ()):
        self.workers, self.loss = workers, loss
        self.gradients: Parameters = params.zeros_like()
        self._total = GradientSum(self.gradients, unused)

    def compute_parts(self, parts: Iterable[Part], *dropout_key: int) -> BatchLoss:
        """Forward and backward. Dropout is keyed by `dropout_key` and the part, not by its thread."""
        self._total.begin()

        def one(work: tuple[int, Part]) -> tuple[float, int]:
            number, part = work
            with np.errstate(over="ignore", invalid="ignore"):        # what is not finite is noticed, and skipped
                return self.loss(part, self._total.turn(number), (*dropout_key, number))

        results = self.workers.map(one, enumerate(parts))
        self._total.finish()
        return BatchLoss(sum(loss for loss, _ in results), sum(count for _, count in results))


class BatchGradients(ParallelGradients[MLMBatch]):
    """The gradients of masked language modelling, micro-batch by micro-batch."""

    def __init__(self, model: MiniBERT, workers: Workers, micro_batch_size: int, recompute: bool = False):
        self.micro_batch_size = micro_batch_size

        def loss(part: MLMBatch, grads: Gradients, dropout_key: DropoutKey) -> tuple[float, int]:
            return add_mlm_gradients(model, grads, part.input_ids, part.target_ids, part.mask_positions,
                                     part.attention_mask, token_types=part.token_types, dropout_key=dropout_key,
                                     recompute=recompute)

        super().__init__(model.params, workers, loss)

    def compute(self, batch: MLMBatch, *dropout_key: int) -> BatchLoss:
        """Forward and backward of a batch."""
        return self.compute_parts(micro_batches(batch, self.micro_batch_size), *dropout_key)


def micro_batches(batch: MLMBatch, size: int) -> list[MLMBatch]:
    """The batch in parts of `size` sequences, each as wide as its longest; parts with nothing masked are left out."""
    parts = []
    for start in range(0, len(batch.input_ids), size):
        rows = slice(start, start + size)
        if batch.mask_positions[rows].any():
            width = int(batch.attention_mask[rows].sum(axis=1).max())
            parts.append(MLMBatch(*(None if field is None else field[rows, :width] if field.ndim == 2 else field[rows]
                                    for field in batch)))  # type: ignore[arg-type]
    return parts


class Evaluation(NamedTuple):
    """How well masked tokens are predicted: mean loss, share of right first guesses, and their number."""

    loss: float
    accuracy: float
    masked: int


def evaluate_batches(model: MiniBERT, batches: list[MLMBatch], workers: Workers) -> Evaluation:
    """Each masked token counts the same, whichever batch it is in. Dropout is off meanwhile."""
    training, model.training = model.training, False

    def one(batch: MLMBatch) -> tuple[float, int, int]:
        with np.errstate(over="ignore", invalid="ignore"):
            logits, _ = model.forward(batch.input_ids, batch.attention_mask, token_types=batch.token_types,
                                      positions=batch.mask_positions, recompute=True)     # nothing is kept
        targets = batch.target_ids[batch.mask_positions]
        right = _right(logits, targets)
        loss, _ = cross_entropy_forward(logits, targets, overwrite=True)
        return loss, right, len(targets)

    try:
        results = workers.map(one, batches)
    finally:
        model.training = training
    count = sum(n for *_, n in results)
    return Evaluation(sum(loss for loss, *_ in results) / count, sum(right for _, right, _ in results) / count, count)


def _right(logits: Array, targets: IntArray) -> int:
    return int((logits.argmax(axis=1) == targets).sum())
