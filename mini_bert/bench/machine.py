"""Measuring the machine that this runs on, for a plan (plan.py).

Times are those of the processor, so that other work on the machine does not count.
"""

from collections.abc import Callable
from dataclasses import replace
from statistics import median
from time import process_time

import numpy as np

from ..core.config import ModelConfig
from ..core.model import MiniBERT
from ..core.params import Parameters, ParamSpec
from ..objectives.masked import MaskedLM
from ..objectives.objective import PassOptions
from ..training.optimisers.adamw import AdamW
from ..training.update import BatchGradients
from ..workers import Workers, workers
from .contest import BenchTask
from .contestant import make_batch
from .flops import count_flops
from .plan import Speeds

_LAYERS = 2                   # of the model that is measured: a layer takes as long as any other
_NUMBERS = 1 << 22            # that the optimiser is timed with: more than a cache holds
_TRIALS = 5


def measured_speeds(config: ModelConfig, length: int, micro_batch_size: int, threads: int) -> Speeds:
    """Time a few micro-batches of a model of the same widths on all threads, and an optimiser's step.

    A deep model is measured with few of its layers; the rest is reckoned by floating-point operations.
    """
    layers = min(_LAYERS, config.num_layers)
    short = replace(config, num_layers=layers)
    flops = count_flops(config, length).step
    part = count_flops(short, length).step
    task = BenchTask("", micro_batch_size * threads, length)
    begin = process_time()
    batch = make_batch(short, task)
    making = (process_time() - begin) / task.batch_size
    model = MiniBERT(short)
    with workers(threads) as team:
        computed = BatchGradients(MaskedLM(model, PassOptions(micro_batch_size)), team)
        seconds = _median_seconds(lambda: computed.compute(batch, 0, 0)) / task.batch_size
        of_a_number = _number_seconds(team)
    return Speeds(seconds * flops / part, flops, of_a_number, making)


def _number_seconds(team: Workers) -> float:
    params = Parameters([ParamSpec("W", (_NUMBERS // 512, 512), std=0.02)])
    gradients = params.zeros_like()
    gradients.flat[...] = np.random.default_rng(0).standard_normal(_NUMBERS, np.float32)
    optimiser = AdamW(params)

    def step() -> None:
        optimiser.grad_norm(gradients, team)
        optimiser.step(gradients, workers=team)

    return _median_seconds(step) / _NUMBERS


def _median_seconds(function: Callable[[], object]) -> float:
    """Of the processor, by all threads."""
    seconds = []
    for trial in range(_TRIALS + 1):
        begin = process_time()
        function()
        if trial:
            seconds.append(process_time() - begin)
    return median(seconds)
