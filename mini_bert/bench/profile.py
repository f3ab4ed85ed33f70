"""Where the time of a training step goes: processor time and memory by operation, compared with the matrix products
alone.

A step runs on one thread while Python reports each call and return. The time between two reports belongs to the
innermost operation that is running: what an operation calls of NumPy counts for it, and what it calls of other
operations does not. So the rows add up to the step. The labels come from the places of the functions in the package,
so a variant of one's own is measured like any other.

Memory is measured in a step of its own, as it makes the step slow: the most that an operation held at a time, above
what was there when it began.

The floor is the time of the step's large products by themselves: for each linear map x W, dy W^T and x^T dy.
"""

import statistics
import sys
import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import thread_time
from types import CodeType, FrameType
from typing import Any

import numpy as np

from ..configs import load_config
from ..training.config import TrainingConfig
from ..workers import workers
from .contest import BenchTask
from .contestant import mini_bert_step

REST = "loop, loss and checks"
_PACKAGE = Path(__file__).parents[1]
_WARM_UP, _TURNS = 2, 7

Shape = tuple[int, int, int]              # of a product: rows, in, out


@dataclass(frozen=True)
class Row:
    """One operation, in a step."""

    name: str
    calls: int
    seconds: float
    peak_bytes: int


@dataclass(frozen=True)
class Profile:
    rows: list[Row]           # the dearest first
    seconds: float            # of the step, as it is without being watched
    watched: float            # the sum of the rows
    floor: float              # of the products alone


def profile(task: BenchTask, steps: int = 5) -> Profile:
    """The medians of this many steps, computed by one thread in the micro-batches of `task.threads`."""
    config = load_config(task.config)
    size = TrainingConfig(batch_size=task.batch_size, micro_batch_size=task.micro_batch_size,
                          threads=task.threads).resolved(config).micro_batch_size
    step = mini_bert_step(config, replace(task, micro_batch_size=size, threads=1))
    for _ in range(_WARM_UP):
        step()
    plain = [_timed(step) for _ in range(steps)]
    watches = []
    for _ in range(steps):
        watches.append(_Watch(thread_time, thread_time))
        with watches[-1]:
            step()
    memory = _Watch(lambda: tracemalloc.get_traced_memory()[0], _new_peak)
    tracemalloc.start()
    try:
        with memory:
            step()
    finally:
        tracemalloc.stop()
    seconds = {name: statistics.median(watch.spent[name] for watch in watches) for name in watches[0].spent}
    rows = [Row(name, watches[0].calls[name], spent, int(memory.most[name])) for name, spent in seconds.items()]
    with workers(1):                      # BLAS with one thread
        floor = _floor(watches[0].products)
    return Profile(sorted(rows, key=lambda row: -row.seconds), statistics.median(plain), sum(seconds.values()), floor)


def _timed(step: Callable[[], float]) -> float:
    begin = thread_time()
    step()
    return thread_time() - begin


def _new_peak() -> float:
    """The most memory since the last call."""
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    return float(peak)


def label(code: CodeType) -> str | None:
    """What the time in a function counts for; None for whatever calls it."""
    file = Path(code.co_filename)
    if not file.is_relative_to(_PACKAGE):
        return None
    match file.relative_to(_PACKAGE).with_suffix("").parts:
        case ("core", "ops", *_, name):
            direction = code.co_name.removeprefix(name + "_")
            return f"{name.replace('_', ' ')}, {direction}" if direction in ("forward", "backward") else None
        case ("core", "params") if code.co_name == "add_product":
            return "linear, gradient of W"
        case ("core", "modules", kind, *_):
            return f"{kind}, around the operations"
        case ("training", "gradient_sum"):
            return "sum of gradients"
        case ("training", "optimisers", *_):
            return "optimiser"
    return None


@dataclass
class _Watch:
    """Inside the context, what lies between the readings of `begin` and `end` is divided among the labels."""

    begin: Callable[[], float]
    end: Callable[[], float]
    spent: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    most: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    calls: Counter[str] = field(default_factory=Counter)
    products: Counter[Shape] = field(default_factory=Counter)
    _labels: dict[CodeType, str | None] = field(default_factory=dict)
    _running: list[str] = field(default_factory=lambda: [REST])
    _last: float = 0.0

    def __enter__(self) -> None:
        self.calls[REST] = 1
        self._last = self.begin()
        sys.setprofile(self._heard)

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        self._count()

    def _count(self) -> None:
        """What has been spent since the last report belongs to the innermost label."""
        name, found = self._running[-1], self.end() - self._last
        self.spent[name] += found
        self.most[name] = max(self.most[name], found)
        self._last = self.begin()

    def _heard(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            code = frame.f_code
            if code not in self._labels:
                self._labels[code] = label(code)
            name = self._labels[code]
            if name is None:
                self._running.append(self._running[-1])
                return
            self._count()
            self.calls[name] += self._running[-1] != name
            self._running.append(name)
            if code.co_name == "linear_forward":
                (rows, n_in), n_out = frame.f_locals["x"].shape, frame.f_locals["W"].shape[1]
                self.products[rows, n_in, n_out] += 1
        elif event == "return" and len(self._running) > 1:
            if self._running[-1] != self._running[-2]:
                self._count()
            self._running.pop()


def _floor(products: Counter[Shape]) -> float:
    """The seconds of the three products of each linear map, the best of some turns."""
    rng, total = np.random.default_rng(0), 0.0
    for (rows, n_in, n_out), times in products.items():
        x, W, dy = (rng.standard_normal(shape, np.float32) for shape in ((rows, n_in), (n_in, n_out), (rows, n_out)))
        y, dx, dW = np.empty_like(dy), np.empty_like(x), np.empty_like(W)
        turns = []
        for _ in range(_TURNS):
            begin = thread_time()
            np.matmul(x, W, out=y)
            np.matmul(dy, W.T, out=dx)
            np.matmul(x.T, dy, out=dW)
            turns.append(thread_time() - begin)
        total += times * min(turns)
    return total
