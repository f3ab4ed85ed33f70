"""Threads that share the work of a step, each with a BLAS of its own.

NumPy releases the interpreter's lock inside its loops and inside BLAS. Two threads that each take half of a
batch, with BLAS at one thread, therefore run the element-wise work in parallel as well, which one pass with
BLAS at two threads does not.
"""

import ctypes
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from typing import Any, TypeVar, cast

from threadpoolctl import threadpool_limits

from .errors import ConfigError

_LARGE_BLOCK = 1 << 23        # bytes

Item = TypeVar("Item")
Result = TypeVar("Result")


_sharing = [1]                # processes that train together on the same cores


def available_cores() -> int:
    """The cores that this process may use, or its share of them."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // _sharing[-1])


def share_cores(processes: int) -> None:
    """From now on this many processes use the same cores."""
    _sharing.append(processes)


class Workers:
    """`threads` threads, the calling one among them."""

    def __init__(self, threads: int):
        if threads < 1:
            raise ConfigError(f"threads must be at least 1, not {threads}.")
        self.threads = threads
        self._others = ThreadPoolExecutor(threads - 1, "mini-bert") if threads > 1 else None

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """The results in the order of the items. A thread that is done takes the next item.

        All threads have stopped when this returns, or raises what a thread raised.
        """
        work = list(items)
        results: list[Any] = [None] * len(work)
        numbers = count()             # next() is atomic

        def run() -> None:
            while (number := next(numbers)) < len(work):
                results[number] = function(work[number])

        if self._others is None or len(work) < 2:
            run()
            return cast(list[Result], results)
        others = [self._others.submit(run) for _ in range(min(self.threads, len(work)) - 1)]
        try:
            run()
        finally:
            errors = [other.exception() for other in others]
        for error in errors:
            if error is not None:
                raise error
        return cast(list[Result], results)

    def close(self) -> None:
        if self._others is not None:
            self._others.shutdown()


@contextmanager
def workers(threads: int = 0) -> Iterator[Workers]:
    """Workers for the duration of the block; 0 means one per core. Meanwhile BLAS uses one thread."""
    keep_freed_memory()
    made = Workers(threads or available_cores())
    try:
        with threadpool_limits(1, "blas"):
            yield made
    finally:
        made.close()


def keep_freed_memory() -> bool:
    """Ask the C library to keep what is freed for the next allocation. Returns whether it agreed.

    A training step allocates the same large arrays as the step before it. By default glibc hands them
    back to the system when they are freed, and taking fresh pages costs a fault every 4 KiB: a tenth to
    a quarter of a step. Call it once before training. It holds for the whole process; other C libraries
    than glibc are left alone.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    ctypes.CDLL(None).malloc_trim(0)                  # what was freed before, while a model was made, goes
    mmap_threshold, trim_threshold = -3, -1           # M_MMAP_THRESHOLD, M_TRIM_THRESHOLD
    return bool(mallopt(mmap_threshold, _LARGE_BLOCK) and mallopt(trim_threshold, 2**31 - 1))
