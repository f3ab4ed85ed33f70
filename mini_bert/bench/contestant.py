"""The process of a contestant: reads numbers of steps from its input, and answers with their times as JSON."""

import json
import sys
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ..configs import load_config
from ..core.config import ModelConfig
from ..plugins import import_file
from ..randomness import generator
from ..text.batches import MLMBatch
from ..text.masking import mask_tokens
from ..training.runs.process_memory import peak_resident_bytes
from .contest import BenchTask

if TYPE_CHECKING:
    from ..training.trainer import Trainer

Step = Callable[[], float]            # performs one step and returns the loss
_MOST_TOKENS = 1 << 40


def make_batch(config: ModelConfig, task: BenchTask) -> MLMBatch:
    """Random ids, 15 % of them masked; the same for every contestant."""
    rng = generator(task.seed, "bench")
    if task.batch_size * task.length > _MOST_TOKENS:      # NumPy would call it an invalid shape
        raise MemoryError
    ids = rng.integers(5, config.vocab_size, (task.batch_size, task.length))
    ids[:, 0], ids[:, -1] = 2, 3
    masked, targets, positions = mask_tokens(ids, config.vocab_size, 4, 0.15, rng)
    return MLMBatch(masked, targets, positions, np.ones(ids.shape, bool))


def trainer_of(config: ModelConfig, task: BenchTask) -> "Trainer":
    """A trainer that takes the task's step again and again, on one batch."""
    from ..core.model import MiniBERT
    from ..training.config import TrainingConfig
    from ..training.trainer import Trainer

    batch = make_batch(config, task)

    class Same:
        def __getitem__(self, step: int) -> MLMBatch:
            return batch

    settings = TrainingConfig(batch_size=task.batch_size, micro_batch_size=task.micro_batch_size,
                              threads=task.threads, warmup_steps=0, steps=10**6, **task.settings)
    return Trainer(MiniBERT(config), Same(), settings)


def mini_bert_step(config: ModelConfig, task: BenchTask) -> Step:
    steps = trainer_of(config, task).steps()
    return lambda: next(steps)


def floor_step(config: ModelConfig, task: BenchTask) -> Step:
    from .floor import products

    steps = products(config, task, make_batch(config, task))
    return lambda: next(steps)


Makers = Mapping[str, Callable[[BenchTask], Step]]


def of_config(maker: Callable[[ModelConfig, BenchTask], Step]) -> Callable[[BenchTask], Step]:
    """A contestant that is made for the model of the task's config."""
    return lambda task: maker(load_config(task.config), task)


MAKERS: Makers = {"mini-bert": of_config(mini_bert_step), "floor": of_config(floor_step)}


def serve(makers: Makers) -> None:
    """Run the contestant and the task given on the command line."""
    name, task = sys.argv[1], BenchTask(**json.loads(sys.argv[2]))
    answers, sys.stdout = sys.stdout, sys.stderr          # libraries may print, too

    def answer(content: dict[str, Any]) -> None:
        answers.write(json.dumps(content) + "\n")
        answers.flush()

    for file in task.imports:
        import_file(file)
    try:
        step = makers[name](task)
        for line in sys.stdin:
            seconds, loss = [], 0.0
            for _ in range(int(line)):
                begin = perf_counter()
                loss = step()
                seconds.append(perf_counter() - begin)
            answer({"seconds": seconds, "loss": loss, "peak_bytes": peak_resident_bytes()})
    except MemoryError:
        answer({"error": f"there is not enough memory for a step of {task.batch_size:,} sequences."})


if __name__ == "__main__":
    serve(MAKERS)
