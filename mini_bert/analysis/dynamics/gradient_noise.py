"""How noisy a gradient is, and hence how large a batch is worth its work.

The gradient of a batch of B sequences is the true one, G, and noise whose covariance is Sigma / B. The simple noise
scale (McCandlish et al. 2018) is the batch at which both are equally large:

    B_simple = tr(Sigma) / |G|^2

Batches well below it waste little; well above it, they bring hardly more than a smaller one. From the gradients g_i of
n micro-batches of b sequences, without the bias that |mean g|^2 has:

    |G|^2      = (n b |mean g|^2 - b mean |g_i|^2) / (n b - b)
    tr(Sigma)  = (mean |g_i|^2 - |mean g|^2) / (1/b - 1/(n b))
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ...core.model import MiniBERT
from ...errors import InputError
from ...evaluation.probabilities import Floats
from ...text.batches import MLMBatch
from ..batches import DataBatch, as_batch, batch_gradient


@dataclass(frozen=True)
class GradientNoise:
    """The simple noise scale in sequences; infinity if the gradient cannot be told from the noise."""

    noise_scale: float
    gradient_square: float                # |G|^2, an estimate that can be below zero
    noise_trace: float                    # tr(Sigma), of one sequence
    micro_batch_size: int
    micro_batches: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"noise_scale": self.noise_scale if np.isfinite(self.noise_scale) else None}


def simple_noise_scale(mean_square: float, square_of_mean: float, micro_batch_size: int,
                       micro_batches: int) -> GradientNoise:
    """From mean |g_i|^2 and |mean g|^2 of micro-batches of one size."""
    n, b = micro_batches, micro_batch_size
    if n < 2 or b < 1:
        raise InputError(f"Noise is told from at least two micro-batches of one sequence or more, not {n} of {b}.")
    gradient = (n * b * square_of_mean - b * mean_square) / (n * b - b)
    trace = (mean_square - square_of_mean) / (1 / b - 1 / (n * b))
    return GradientNoise(trace / gradient if gradient > 0 else float("inf"), gradient, trace, b, n)


def gradient_noise_scale(model: MiniBERT, batches: DataBatch | Sequence[MLMBatch], *,
                         micro_batch_size: int = 4) -> GradientNoise:
    """The noise scale of a model's gradient on some batches, cut into micro-batches of that many sequences.

    Sequences that do not fill a micro-batch are left out. Every micro-batch has the mean of its own masked positions.
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
        raise InputError(f"The batches hold {len(squares)} micro-batches of {micro_batch_size} sequences; noise is "
                         "told from at least two.")
    total /= len(squares)
    return simple_noise_scale(float(np.mean(squares)), float(total @ total), micro_batch_size, len(squares))
