"""Contestants take turns at the same training step, each in its own process.

Machines are noisy, so timings a minute apart cannot be compared. The contestants therefore alternate, a few steps at a
time, and medians and minima are taken over all rounds. Each has its own libraries and threads, and sleeps while the
others run.
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from time import sleep
from typing import Any

from ..errors import MiniBertError
from ..interrupts import broken_pipes_raise

OURS = ("mini-bert", "floor")
_PEERS = Path(__file__).parents[2] / "benchmarks" / "torch_peer.py"
_WARM_UP, _ROUND = 3, 5       # steps


class BenchError(MiniBertError):
    """A contestant could not run."""


@dataclass(frozen=True)
class BenchTask:
    """A training step: forward, backward, clipping and AdamW on `batch_size` sequences of `length` tokens."""

    config: str = "mini"
    batch_size: int = 32
    length: int = 64
    micro_batch_size: int = 0
    threads: int = 2
    settings: dict[str, Any] = field(default_factory=dict)    # of our training, where they are not the defaults
    seed: int = 0
    imports: tuple[str, ...] = ()         # files of the user's own, whose words the config may use


@dataclass(frozen=True)
class Timing:
    """The results of one contestant: seconds of each step, peak memory of its process, last loss."""

    seconds: list[float]
    peak_bytes: int
    loss: float

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def minimum(self) -> float:
        return min(self.seconds)


def _program(name: str) -> list[str]:
    """The Python arguments that run a contestant. Peers and their libraries are not part of the package."""
    if name in OURS:
        return ["-m", "mini_bert.bench.contestant"]
    for library in {"torch", name.split(".")[0]}:
        if find_spec(library) is None:
            raise BenchError(f"{library} is not installed; `make bench-train` installs it in a separate environment.")
    if not _PEERS.is_file():
        raise BenchError("Comparisons with PyTorch need a clone of the repository, since benchmarks/ is not installed.")
    return [str(_PEERS)]


class Contestant:
    """A process that waits for numbers of steps. Its command is given the task, and before it its name if `named`."""

    def __init__(self, name: str, task: BenchTask, command: Sequence[str], environment: Mapping[str, str],
                 named: bool = True):
        self.name = name
        self._process = subprocess.Popen([*command, *([name] if named else []), json.dumps(asdict(task))],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.seconds: list[float] = []
        self.last: dict[str, Any] = {}

    def run(self, steps: int, keep: bool) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            with broken_pipes_raise():
                self._process.stdin.write(f"{steps}\n")
                self._process.stdin.flush()
        except BrokenPipeError:
            pass
        answer = self._process.stdout.readline()
        if not answer:
            raise BenchError(f"The contestant {self.name} has stopped; see its messages above.")
        self.last = json.loads(answer)
        if "error" in self.last:
            raise BenchError(f"{self.name}: {self.last['error']}")
        self.seconds += self.last["seconds"] if keep else []

    def close(self, last: str = "") -> None:
        """Close its input, behind a last line for a process that needs one, and wait for its end."""
        with broken_pipes_raise():
            self._process.communicate(last or None)


def round_count(steps: int) -> int:
    """The number of rounds for at least this many steps."""
    return -(-steps // _ROUND)


def compete(names: Sequence[str], task: BenchTask, steps: int = 30,
            progress: Callable[[int, int], None] | None = None,
            program: Callable[[str], list[str]] = _program) -> dict[str, Timing]:
    """Time at least `steps` steps of each contestant, in turns; `program` gives the Python arguments that run it."""
    contestants: list[Contestant] = []
    try:
        for name in names:
            contestants.append(Contestant(name, task, [sys.executable, *program(name)],
                                          {**os.environ, "TOKENIZERS_PARALLELISM": "false"}))
        for contestant in contestants:
            contestant.run(_WARM_UP, keep=False)
        rounds = round_count(steps)
        for number in range(rounds):
            for contestant in contestants:
                sleep(0.05)   # let the threads of the previous one go to sleep
                contestant.run(_ROUND, keep=True)
            if progress is not None:
                progress(number + 1, rounds)
        return {c.name: Timing(c.seconds, c.last["peak_bytes"], c.last["loss"]) for c in contestants}
    finally:
        for contestant in contestants:
            contestant.close()
