"""The loss and gradient of a batch, for the analyses."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.gradients import require_finite
from ..core.model import MiniBERT
from ..core.params import Parameters
from ..errors import InputError
from ..objectives.masked import MaskedLM, masked_predictions, micro_batches
from ..objectives.objective import PassOptions
from ..text.batches import MLMBatch
from ..training.update import BatchGradients
from ..workers import Workers

DataBatch = MLMBatch | Sequence[Any]
_AT_A_TIME = 16               # sequences per forward pass, to limit memory


def as_batch(data_batch: DataBatch) -> MLMBatch:
    """An MLMBatch from one, or from (input_ids, target_ids, mask_positions) as `mask_tokens` returns them, optionally
    with an attention mask."""
    if isinstance(data_batch, MLMBatch):
        batch = data_batch
    elif isinstance(data_batch, Sequence) and 3 <= len(data_batch) <= 4:
        ids, targets, positions, *mask = (np.asarray(part) for part in data_batch)
        real = mask[0].astype(bool) if mask else np.ones(ids.shape, bool)
        batch = MLMBatch(ids, targets, positions.astype(bool), real)
    else:
        raise InputError("A batch must be an MLMBatch, or (input_ids, target_ids, mask_positions) with an attention "
                         "mask if there is padding.")
    if batch.input_ids.ndim != 2 or not batch.mask_positions.any():
        raise InputError("A batch must have the shape (sequences, tokens) and at least one masked position.")
    return batch


def batch_loss(model: MiniBERT, batch: MLMBatch) -> float:
    """The mean loss at the masked positions, without dropout; infinity where it is no number."""
    try:
        loss = float(masked_predictions(model, micro_batches(batch, _AT_A_TIME), Workers(1)).loss.mean())
    except ArithmeticError:                       # NumericalError: the numbers have grown beyond the precision
        return float("inf")
    return loss if np.isfinite(loss) else float("inf")


def batch_gradient(model: MiniBERT, batch: MLMBatch) -> tuple[float, Parameters]:
    """The mean loss and its gradient, without dropout."""
    computed = BatchGradients(MaskedLM(model, PassOptions(_AT_A_TIME)), Workers(1))
    loss = computed.compute(batch)["masked"]
    require_finite(computed.gradients, loss.total)
    computed.gradients.flat /= loss.count
    return loss.mean, computed.gradients
