"""The floor of a training step: only its large matrix products, on the same threads.

Each linear map on N rows has three products: x W, dy W^T and x^T dy. A step cannot be faster than these, so the ratio
of the floor to a step shows how little everything else costs.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ..core.config import ModelConfig
from ..text.batches import MLMBatch
from ..training.config import TrainingConfig
from ..workers import workers
from .contest import BenchTask


def shapes(config: ModelConfig, rows: int, masked: int) -> list[tuple[int, int, int]]:
    """(rows, in, out) of each linear map of an MLM step; the last layer computes Q and what follows at masked rows."""
    H, I, V = config.hidden_size, config.intermediate_size, config.vocab_size
    whole = [(rows, H, H)] * 4 + [(rows, H, I), (rows, I, H)]
    last = [(rows, H, H)] * 2 + [(masked, H, H)] * 2 + [(masked, H, I), (masked, I, H)]
    return whole * (config.num_layers - 1) + last + [(masked, H, V)]


def products(config: ModelConfig, task: BenchTask, batch: MLMBatch) -> Iterator[float]:
    """Compute all products, the batch divided among the threads; one iteration is one step."""
    size = TrainingConfig(batch_size=task.batch_size, micro_batch_size=task.micro_batch_size,
                          threads=task.threads).resolved(config).micro_batch_size
    parts = [slice(start, start + size) for start in range(0, task.batch_size, size)]
    rng = np.random.default_rng(0)
    work = []
    for part in parts:
        count = len(batch.input_ids[part]) * task.length
        masked = int(batch.mask_positions[part].sum())
        work.append([[rng.standard_normal(shape, np.float32)
                      for shape in ((n, i), (i, o), (n, o), (n, o), (n, i), (i, o))]
                     for n, i, o in shapes(config, count, masked)])

    def one(maps: list[list[npt.NDArray[np.float32]]]) -> None:
        for x, W, dy, y, dx, dW in maps:
            np.matmul(x, W, out=y)
            np.matmul(dy, W.T, out=dx)
            np.matmul(x.T, dy, out=dW)

    with workers(task.threads) as team:
        while True:
            team.map(one, work)
            yield 0.0
