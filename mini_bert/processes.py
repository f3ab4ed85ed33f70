"""Worker processes: calls of a module's functions, in processes of their own.

A worker is a new Python that imports the functions it is asked for, and never the script that started it. So a script
needs no `if __name__ == "__main__":`, and one that comes from standard input, or a notebook, can use workers too.

This process holds only its own ends of a worker's pipes. A worker that has died is therefore noticed at the next read
or write, whenever it died; and a worker notices the end of this process by the end of its input.
"""

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib.machinery import PathFinder
from multiprocessing.reduction import ForkingPickler
from queue import SimpleQueue
from signal import SIGTERM
from struct import Struct
from threading import Event, Thread
from typing import IO, Any

from .errors import MiniBertError
from .interrupts import broken_pipes_raise, children_without_interrupts, held_interrupts

_SERVE = ("import json, sys; sys.path[:] = json.loads(sys.stdin.buffer.readline()); "
          "from mini_bert.processes import serve; serve()")
_LENGTH = Struct("<Q")                # of a message, before it

_busy = Event()                       # in a worker: a call is under way


class WorkerEndedError(Exception):
    """A worker ended before it had answered: it was killed, or ended by itself."""


class Worker:
    """One process. Calls are answered one at a time; `call` may be made from any thread."""

    def __init__(self) -> None:
        with children_without_interrupts():           # Ctrl-C reaches this process, which ends the worker
            self._process = subprocess.Popen([sys.executable, "-c", _SERVE], stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE)
        self._begun = False

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The function's result; an exception in it is raised here."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        message = ForkingPickler.dumps((function, arguments))
        try:
            if not self._begun:
                self._process.stdin.write(json.dumps([place for place in sys.path if isinstance(place, str)])
                                          .encode() + b"\n")
                self._begun = True
            _write(self._process.stdin, message)
            answer = _read(self._process.stdout)
        except (OSError, ValueError):                 # its pipes are closed
            answer = None
        if answer is None:
            raise WorkerEndedError("A worker process has ended.")
        done, result = ForkingPickler.loads(answer)
        if not done:
            raise result
        return result

    def terminate(self) -> None:
        """Ask it to end, by SIGTERM; `close` waits for it."""
        self._process.terminate()

    def close(self) -> None:
        """End it, and wait until it has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError):
            self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@contextmanager
def worker_pool(count: int, prepare: Callable[..., Any], *arguments: Any) -> Iterator[Callable[..., Future[Any]]]:
    """`submit(function, *arguments)` gives the future of a call in one of `count` workers.

    Each worker first calls `prepare(*arguments)`. Whatever ends the block ends the workers.
    """
    team: list[Worker] = []
    idle: SimpleQueue[Worker] = SimpleQueue()

    def ready(worker: Worker) -> None:
        worker.call(prepare, *arguments)
        idle.put(worker)

    def call(function: Callable[..., Any], *given: Any) -> Any:
        worker = idle.get()
        try:
            return worker.call(function, *given)
        finally:
            idle.put(worker)

    with broken_pipes_raise():
        threads = ThreadPoolExecutor(count)
        try:
            with held_interrupts():
                team += [Worker() for _ in range(count)]
            for future in [threads.submit(ready, worker) for worker in team]:
                future.result()
            yield lambda function, *given: threads.submit(call, function, *given)
        finally:
            with held_interrupts():
                for worker in team:
                    worker.terminate()
                threads.shutdown(cancel_futures=True)
                for worker in team:
                    worker.close()


def can_be_sent(thing: Any) -> bool:
    """Could a worker import the class of this object? Not if it is written in the running script or notebook."""
    package = type(thing).__module__.partition(".")[0]
    return package != "__main__" and (package in sys.builtin_module_names or PathFinder.find_spec(package) is not None)


# -------------------------------------------------------------------- in the worker

def serve() -> None:
    """Answer calls until the input ends. What the functions print goes to standard error."""
    source, target = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    calls: SimpleQueue[bytes | None] = SimpleQueue()
    Thread(target=_receive, args=(source, calls), daemon=True).start()
    while (message := calls.get()) is not None:
        try:
            answer = _answer(message)
        except KeyboardInterrupt:                     # a training run that was asked to stop, and has saved
            break
        _busy.clear()
        try:
            _write(target, answer)
        except OSError:                               # nobody waits for it any more
            break
    os._exit(0)                                       # the reading thread may hold the lock of its input


def _receive(source: IO[bytes], calls: "SimpleQueue[bytes | None]") -> None:
    while (message := _read(source)) is not None:
        _busy.set()
        calls.put(message)
    calls.put(None)
    if _busy.is_set():
        os.kill(os.getpid(), SIGTERM)                 # a training run saves; anything else ends at once


def _answer(message: bytes) -> bytes:
    try:
        function, arguments = ForkingPickler.loads(message)
        result = True, function(*arguments)
    except MiniBertError as error:
        result = False, error
    except Exception as error:
        error.add_note("".join(["In a worker process:\n", *traceback.format_tb(error.__traceback__)]))
        result = False, error
    try:
        return bytes(ForkingPickler.dumps(result))
    except Exception as error:
        return bytes(ForkingPickler.dumps((False, RuntimeError(f"{type(error).__name__}: {error} (in a worker, about "
                                                               f"{result[1]!r:.200})"))))


def _write(target: IO[bytes], message: Any) -> None:
    target.write(_LENGTH.pack(len(message)))
    target.write(message)
    target.flush()


def _read(source: IO[bytes]) -> bytes | None:
    """The next message, or None at the end of the input."""
    header = source.read(_LENGTH.size)
    if len(header) < _LENGTH.size:
        return None
    length, = _LENGTH.unpack(header)
    message = source.read(length)
    return message if len(message) == length else None
