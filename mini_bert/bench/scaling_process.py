"""One of the processes of `mini-bert bench scaling`, or the only one: takes as many steps as it is told.

The first process reads numbers of steps from its input and answers with their times as JSON, as a contestant does. Zero
ends it, as mpirun does not pass the end of its input on.
"""

import json
import sys
from dataclasses import asdict, dataclass
from statistics import median
from time import perf_counter

import numpy as np

from ..configs import load_config
from ..parallel.launch import launched_processes
from ..parallel.processes import from_first, gather, world
from ..plugins import import_file
from .contest import BenchTask
from .contestant import trainer_of

_TRIALS = 7


@dataclass(frozen=True)
class Link:
    """What a message from one process to another costs: seconds, and seconds for each byte of it."""

    latency: float
    per_byte: float


def measured_link(bytes_moved: int) -> Link | None:
    """Between processes that gather so many bytes, an even shard from each; None for a process alone."""
    processes = world()
    if processes.size == 1:
        return None
    size = bytes_moved // processes.size
    numbers, common = np.ones(size * processes.size, np.uint8), processes.common(size * processes.size, np.uint8)
    shards = [slice(rank * size, (rank + 1) * size) for rank in range(processes.size)]
    large, small = [], []
    for _ in range(_TRIALS):
        processes.share(0)
        begin = perf_counter()
        gather(processes, numbers, shards, common)
        large.append(perf_counter() - begin)
        begin = perf_counter()
        processes.share(0)
        small.append(perf_counter() - begin)
    return Link(median(small), median(large) / (size * (processes.size - 1)))


def main() -> None:
    with launched_processes():
        _serve(BenchTask(**json.loads(sys.argv[1])))


def _serve(task: BenchTask) -> None:
    answers, sys.stdout = sys.stdout, sys.stderr          # libraries may print, too
    processes = world()
    for file in task.imports:
        import_file(file)
    trainer = trainer_of(load_config(task.config), task)
    steps, link = trainer.steps(), measured_link(trainer.objective.params.flat.nbytes)
    state = processes.share(sum(array.nbytes for array in trainer.optimiser.state.values()))
    while wanted := from_first(processes, lambda: int(sys.stdin.readline() or 0)):
        seconds, before = [], processes.exchanged_bytes
        for _ in range(wanted):
            processes.share(0)
            begin = perf_counter()
            next(steps)
            seconds.append(perf_counter() - begin)
        exchanged = (processes.exchanged_bytes - before) // wanted
        if processes.rank == 0:
            answers.write(json.dumps({"seconds": seconds, "exchanged_bytes": exchanged, "state_bytes": max(state),
                                      "link": None if link is None else asdict(link)}) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
