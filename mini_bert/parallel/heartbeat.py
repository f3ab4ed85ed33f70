"""A process that has stopped answering is noticed, and named.

In every process a thread tells of itself every few moments: the first process to all others, the others to the first.
Whoever hears nothing of another for too long says whose silence it is, and ends all processes. A process that computes,
evaluates or writes for hours is heard of all the time; one that was stopped, or whose host is gone, is not.
"""

import sys
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .mpi import OverMPI

_OFTEN = 10                           # beats in the silence that is allowed


class Heartbeat:
    """Beats inside the block. `silence` are the seconds after which a process counts as gone."""

    def __init__(self, processes: "OverMPI", silence: float):
        self._processes, self._silence = processes, silence
        self._messages = processes.messages()
        self._stop, self._stream = Event(), sys.stderr
        self._thread = Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join()

    def _beat(self) -> None:
        others = range(1, self._processes.size) if self._processes.rank == 0 else [0]
        heard, pending = {other: monotonic() for other in others}, list[Any]()
        while not self._stop.wait(self._silence / _OFTEN):
            woken = monotonic()
            pending = self._messages.send_signs(others, pending)
            for other in others:
                if self._messages.heard_of(other):
                    heard[other] = monotonic()
            gone = [other for other in others if monotonic() - heard[other] > self._silence]
            if gone and monotonic() - woken < self._silence / _OFTEN:         # this process was not asleep itself
                names = ", ".join(map(self._processes.name, gone))
                print(f"mini-bert: nothing was heard of {names} for {self._silence:g} s; all processes end. The last "
                      "checkpoint is whole; mini-bert resume continues from it.", file=self._stream, flush=True)
                self._processes.abort(1)
