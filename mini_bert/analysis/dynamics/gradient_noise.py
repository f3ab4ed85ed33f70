"""The noise of a gradient, which says up to what size a larger batch pays off.

The gradient of a batch of B sequences is the true gradient G plus noise with covariance Sigma / B. The simple noise
scale (McCandlish et al. 2018) is the batch size at which both are equally large:

    B_simple = tr(Sigma) / |G|^2

Well below it, a larger batch saves almost as many steps as it costs; well above it, it helps little. Unbiased estimates
from the gradients g_i of n micro-batches of b sequences:

    |G|^2      = (n b |mean g|^2 - b mean |g_i|^2) / (n b - b)
    tr(Sigma)  = (mean |g_i|^2 - |mean g|^2) / (1/b - 1/(n b))
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...core.model import MiniBERT
from ...errors import InputError
from ...evaluation.probabilities import Floats
from ...evaluation.result import Result
from ...text.batches import MLMBatch
from ..batches import DataBatch, as_batch, batch_gradient


@dataclass(frozen=True)
class GradientNoise(Result):
    """The simple noise scale in sequences; infinity if the gradient is lost in the noise."""

    noise_scale: float
    gradient_square: float                # |G|^2; the estimate can be negative
    noise_trace: float                    # tr(Sigma), for one sequence
    micro_batch_size: int
    micro_batches: int


def simple_noise_scale(mean_square: float, square_of_mean: float, micro_batch_size: int,
                       micro_batches: int) -> GradientNoise:
    """The noise scale from mean |g_i|^2 and |mean g|^2 of micro-batches of equal size."""
    n, b = micro_batches, micro_batch_size
    if n < 2 or b < 1:
        raise InputError(f"The noise scale needs at least two micro-batches of one or more sequences, not {n} of {b}.")
    gradient = (n * b * square_of_mean - b * mean_square) / (n * b - b)
    trace = (mean_square - square_of_mean) / (1 / b - 1 / (n * b))
    return GradientNoise(trace / gradient if gradient > 0 else float("inf"), gradient, trace, b, n)


def gradient_noise_scale(model: MiniBERT, batches: DataBatch | Sequence[MLMBatch], *,
                         micro_batch_size: int = 4) -> GradientNoise:
    """The noise scale of a model's gradient on batches, which are cut into micro-batches of `micro_batch_size`.

    Sequences that do not fill a micro-batch are ignored. A micro-batch's loss is the mean over its masked positions.
    """
    given = [batches] if isinstance(batches, MLMBatch) or not all(isinstance(b, MLMBatch) for b in batches) \
        else batches
    if micro_batch_size < 1:
        raise InputError(f"micro_batch_size must be at least 1, not {micro_batch_size}.")
    total: Floats = np.zeros(model.params.flat.size)
    squares = []
    for batch in map(as_batch, given):
        for start in range(0, len(batch.input_ids) - micro_batch_size + 1, micro_batch_size):
            rows = slice(start, start + micro_batch_size)
            part = MLMBatch(*(None if field is None else field[rows] for field in batch))  # type: ignore[arg-type]
            if part.mask_positions.any():
                _, gradients = batch_gradient(model, part)
                flat = gradients.flat.astype(np.float64)
                squares.append(float(flat @ flat))
                total += flat
    if len(squares) < 2:
        raise InputError(f"The batches hold {len(squares)} micro-batches of {micro_batch_size} sequences; the noise "
                         "scale needs at least two.")
    total /= len(squares)
    return simple_noise_scale(float(np.mean(squares)), float(total @ total), micro_batch_size, len(squares))
