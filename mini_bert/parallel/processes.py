"""What a process sees of the others that train with it, and the process that is alone.

There are two ways to talk. `share` tells everybody something small; `transfer` moves arrays between processes.
Processes of one host have memory in common besides, which saves the transfer of what all of them need. All else is made
of these: what is only done once is done by the first process, which also writes and displays.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import MiniBertError

Value = TypeVar("Value")
Item = TypeVar("Item")
Result = TypeVar("Result")
Numbers = npt.NDArray[Any]


class Message(NamedTuple):
    """Contiguous numbers that go to another process, or the place for those that come from it."""

    other: int
    numbers: Numbers


class Processes(Protocol):
    """All processes, as each of them sees them. Every method is called by all of them, in the same order."""

    rank: int                             # of this process, from 0
    size: int                             # how many there are
    exchanged_bytes: int                  # of arrays that this process has given to others, or read from their memory

    def name(self, rank: int) -> str:
        """Which process that is, for a person."""

    def share(self, value: Value) -> list[Value]:
        """What each process gave, in their order."""

    def transfer(self, sent: Sequence[Message], received: Sequence[Message]) -> None:
        """Send and receive; what two processes send each other arrives in its order."""


    def common(self, size: int, dtype: npt.DTypeLike) -> list[Numbers] | None:
        """Zeros of each process that all of them can read and write; None if they are on several hosts."""


class Alone:
    """One process."""

    rank, size, exchanged_bytes = 0, 1, 0

    def name(self, rank: int) -> str:
        return "the only process"

    def share(self, value: Value) -> list[Value]:
        return [value]

    def transfer(self, sent: Sequence[Message], received: Sequence[Message]) -> None:
        return None

    def common(self, size: int, dtype: npt.DTypeLike) -> list[Numbers] | None:
        return None


ALONE = Alone()
_world: list[Processes] = [ALONE]


def world() -> Processes:
    """The processes that train together now: those that mpirun has started, if there are any."""
    return _world[-1]


@contextmanager
def working_as(processes: Processes) -> Iterator[None]:
    """Inside, `world()` is these processes."""
    _world.append(processes)
    try:
        yield
    finally:
        _world.remove(processes)


# -------------------------------------------------------------------- made of the two ways

def first_only(processes: Processes, function: Callable[[], Value]) -> Value | None:
    """Call the function in the first process, which gets its value. An error of ours in it is raised in all."""
    value, failed = None, None
    if processes.rank == 0:
        try:
            value = function()
        except MiniBertError as error:
            if processes.size == 1:
                raise
            failed = error
    if processes.size > 1 and (failed := processes.share(failed)[0]) is not None:
        raise failed
    return value


def from_first(processes: Processes, function: Callable[[], Value]) -> Value:
    """As `first_only`, and all get the value."""
    value: Any = first_only(processes, function)
    return processes.share(value)[0]        # type: ignore[no-any-return]


def on_first(processes: Processes, function: Callable[[], Any]) -> None:
    """Let the first process do something that the others neither need nor wait for."""
    if processes.rank == 0:
        function()


def gather(processes: Processes, numbers: Numbers, shards: Sequence[slice],
           common: list[Numbers] | None = None) -> None:
    """Each process has its own shard of `numbers`; afterwards all have all of them.

    `common` is memory of all of them, of this size and for nothing else.
    """
    if processes.size == 1:
        return
    mine, others = numbers[shards[processes.rank]], _others(processes)
    if common is not None:
        processes.share(None)                             # all have read what was there before
        common[0][shards[processes.rank]] = mine
        processes.share(None)
        for other in others:
            numbers[shards[other]] = common[0][shards[other]]
            processes.exchanged_bytes += numbers[shards[other]].nbytes
        return
    processes.transfer([Message(other, mine) for other in others],
                       [Message(other, numbers[shards[other]]) for other in others])


def give_all(processes: Processes, numbers: Numbers) -> None:
    """The first process' numbers, for all."""
    if processes.rank == 0:
        processes.transfer([Message(other, numbers) for other in _others(processes)], [])
    else:
        processes.transfer([], [Message(0, numbers)])


def collect(processes: Processes, shard: Numbers, shards: Sequence[slice]) -> Iterator[Numbers]:
    """In the first process the shards of all, one after the other; in the others nothing. To be run to its end."""
    if processes.rank:
        processes.transfer([Message(0, shard)], [])
        return
    yield shard
    for other in _others(processes):
        place = np.empty(shards[other].stop - shards[other].start, shard.dtype)
        processes.transfer([], [Message(other, place)])
        yield place


def hand_out(processes: Processes, pieces: Iterator[Numbers], shard: Numbers) -> None:
    """The reverse: the first process has a piece for each, the first of them its own."""
    if processes.rank:
        processes.transfer([], [Message(0, shard)])
        return
    shard[...] = next(pieces)
    for other, piece in zip(_others(processes), pieces, strict=True):
        processes.transfer([Message(other, np.ascontiguousarray(piece))], [])


def _others(processes: Processes) -> list[int]:
    return [rank for rank in range(processes.size) if rank != processes.rank]


class Spread:
    """A team whose items are shared out among the processes, and in each of them among its threads.

    For functions that give small results and change nothing. All processes get all results.
    """

    def __init__(self, processes: Processes, team: Any):
        self.processes, self.team = processes, team

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """The results in the order of the items; an error of ours in one process is raised in all."""
        work = list(items)
        outcome: Any
        try:
            outcome = self.team.map(function, work[self.processes.rank :: self.processes.size])
        except MiniBertError as error:
            if self.processes.size == 1:
                raise
            outcome = error
        results: list[Any] = [None] * len(work)
        for rank, found in enumerate(self.processes.share(outcome)):
            if isinstance(found, MiniBertError):
                raise found
            results[rank :: self.processes.size] = found
        return results
