"""Processes over MPI.

Every message goes directly from one process to another, and who receives says from whom. That is what Alltoallv and
Allgatherv do with large messages, too; by itself it also tells which process a wait is for, so that one that does not
come can be named. Waiting leaves the processor to others: there may be more processes than cores.
"""

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter, sleep
from typing import Any

import numpy as np
import numpy.typing as npt

from .processes import Message, Numbers, Value

_AT_ONCE = 1 << 28                    # bytes of a message; MPI counts to 2^31
_WORDS, _NUMBERS = 1, 2               # tags
_EAGER = 0.005                        # seconds of waiting before the first pause
_HEARD = 0.5                           # seconds
_PAUSE, _LONGEST_PAUSE = 1e-4, 0.01   # the longer the wait, the longer the pauses
_EAGER_TRANSFER = 0.5                 # while arrays come in, they come in by asking for them


def everybody() -> Any:
    """The communicator of all processes that were started together."""
    from mpi4py import MPI

    return MPI.COMM_WORLD


class OverMPI:
    """All processes of a communicator. `patience` are the seconds that a process may keep others waiting."""

    def __init__(self, communicator: Any, patience: float = float("inf")):
        from mpi4py import MPI

        self._mpi, self._all = MPI, communicator.Dup()
        self.rank, self.size, self.patience = self._all.Get_rank(), self._all.Get_size(), patience
        self.exchanged_bytes = 0
        self._windows: list[Any] = []
        self._hosts = [""] * self.size
        self._hosts = self.share(socket.gethostname())

    def name(self, rank: int) -> str:
        return f"process {rank} of {self.size}" + (f" on {self._hosts[rank]}" if self._hosts[rank] else "")

    @property
    def hosts(self) -> list[str]:
        """The name of each process' host."""
        return list(self._hosts)

    def share(self, value: Value) -> list[Value]:
        """Small things of any kind, as mpi4py packs them."""
        packed = self._mpi.pickle.dumps(value)
        others = [rank for rank in range(self.size) if rank != self.rank]
        sends = [self._all.Isend([packed, self._mpi.BYTE], other, _WORDS) for other in others]
        values: list[Any] = [None] * self.size
        values[self.rank] = value
        awaited, status = set(others), self._mpi.Status()

        def arrived() -> bool:
            for other in sorted(awaited):
                if self._all.Iprobe(other, _WORDS, status):
                    place = bytearray(status.Get_count(self._mpi.BYTE))
                    self._all.Recv([place, self._mpi.BYTE], other, _WORDS)
                    values[other] = self._mpi.pickle.loads(place)
                    awaited.discard(other)
            return not awaited

        self._wait(arrived, lambda: sorted(awaited), _EAGER)
        self._wait(lambda: bool(self._mpi.Request.Testall(sends)), lambda: others, _EAGER)
        return values

    def transfer(self, sent: Sequence[Message], received: Sequence[Message]) -> None:
        requests = [self._all.Irecv([part, self._mpi.BYTE], message.other, _NUMBERS)
                    for message in received for part in _parts(message.numbers)]
        owners = [message.other for message in received for _ in _parts(message.numbers)]
        for message in sent:
            requests += [self._all.Isend([part, self._mpi.BYTE], message.other, _NUMBERS)
                         for part in _parts(message.numbers)]
            owners += [message.other for _ in _parts(message.numbers)]
            self.exchanged_bytes += message.numbers.nbytes
        missing = set(range(len(requests)))

        def done() -> bool:
            for index in self._mpi.Request.Testsome(requests) or ():
                missing.discard(index)
            return not missing

        self._wait(done, lambda: sorted({owners[index] for index in missing}), _EAGER_TRANSFER)

    def common(self, size: int, dtype: npt.DTypeLike) -> list[Numbers] | None:
        if len(set(self._hosts)) > 1:
            return None
        kind = np.dtype(dtype)
        window = self._mpi.Win.Allocate_shared(size * kind.itemsize, kind.itemsize, comm=self._all)
        self._windows.append(window)              # the memory lives as long as it does
        mine: list[Numbers] = [np.frombuffer(window.Shared_query(rank)[0], kind, size) for rank in range(self.size)]
        mine[self.rank].fill(0)
        self.share(None)
        return mine

    def messages(self) -> "Signs":
        """Signs of life, beside everything else."""
        return Signs(self._mpi, self._all.Dup())

    def abort(self, code: int) -> None:
        """End all processes. A launcher needs a moment to pass on what this one has printed: MPICH's drops it."""
        sleep(_HEARD)
        self._mpi.COMM_WORLD.Abort(code)

    def _wait(self, done: Callable[[], bool], late: Callable[[], list[int]], eager: float) -> None:
        begin = perf_counter()
        while not done():
            waited = perf_counter() - begin
            if waited < eager:
                _let_others_run()
            elif waited < self.patience:
                sleep(min(_PAUSE + waited / 100, _LONGEST_PAUSE))
            else:
                raise TimeoutError(f"{', '.join(map(self.name, late()))} did not come to a common step within "
                                   f"{self.patience:g} s.")


class Signs:
    """Messages without content, which a thread of its own sends and receives."""

    def __init__(self, mpi: Any, communicator: Any):
        self._mpi, self._all, self._nothing = mpi, communicator, bytearray(1)

    def send_signs(self, others: Sequence[int], pending: list[Any]) -> list[Any]:
        """Send a sign to those that have taken the last one; the answer is what is on its way."""
        waiting = {other: request for other, request in pending if not request.Test()}
        return [(other, waiting.get(other) or self._all.Isend([self._nothing, self._mpi.BYTE], other))
                for other in others]

    def heard_of(self, other: int) -> bool:
        """Take the signs that have come from a process; were there any?"""
        found, place = False, bytearray(1)
        while self._all.Iprobe(other):
            self._all.Recv([place, self._mpi.BYTE], other)
            found = True
        return found


def _let_others_run() -> None:
    if hasattr(os, "sched_yield"):
        os.sched_yield()
    else:
        sleep(0)


def _parts(numbers: Numbers) -> Iterator[Numbers]:
    """The bytes of contiguous numbers, in parts that a message can hold."""
    whole = numbers.reshape(-1).view(np.uint8)
    for start in range(0, whole.size, _AT_ONCE):
        yield whole[start : start + _AT_ONCE]
