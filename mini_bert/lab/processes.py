"""Several pieces of work at once, each in a process of its own with one thread: on few cores that is more efficient
than one piece of work with several threads.

A piece of work ends with its result, or with an error in a sentence. If this process is interrupted, those that are
under way are asked to stop, which saves a run, and are waited for.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from ..core.registry import plugin_paths
from ..errors import ConfigError, MiniBertError
from ..interrupts import broken_pipes_raise, held_interrupts
from ..parallel.processes import ALONE, Processes, working_as
from ..processes import Worker, WorkerEndedError

Work = Callable[[], Any]                          # a partial of a function of a module: it is sent to the process

_importing = False                                # in a process: the user's own files are being imported


class Failed:
    """Work that ended with an error."""

    def __init__(self, reason: str):
        self.reason = reason


def done_in_turn(work: Sequence[Work]) -> Iterator[tuple[int, Any]]:
    """(number, result or Failed) of each piece of work, one after the other in this process."""
    for number, one in enumerate(work):
        yield number, _attempt(one)


def done_at_once(work: Sequence[Work], jobs: int, begins: Callable[[int], None]) -> Iterator[tuple[int, Any]]:
    """The same with up to `jobs` processes, in the order in which they end; `begins` is called at the start of each."""
    if _importing:
        raise ConfigError("This file registers words, so every process of the lab imports it, and it runs the lab "
                          "itself; put what runs the lab under if __name__ == \"__main__\":.")
    waiting, running = list(enumerate(work)), dict[Future[Any], tuple[int, Worker]]()
    with broken_pipes_raise(), ThreadPoolExecutor(jobs) as threads:
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    number, one = waiting.pop(0)
                    with held_interrupts():
                        worker = Worker()
                        running[threads.submit(worker.call, _serve, one, plugin_paths())] = number, worker
                    begins(number)
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    number, worker = running.pop(future)
                    worker.close()
                    try:
                        yield number, future.result()
                    except WorkerEndedError:
                        yield number, Failed("Its process was killed, perhaps because memory ran out.")
        finally:
            for _, worker in running.values():
                worker.terminate()                # SIGTERM: a run finishes its step and saves
            for _, worker in running.values():
                worker.close()


def done_by_processes(work: Sequence[Work], processes: Processes) -> Iterator[tuple[int, Any]]:
    """The same where mpirun has started several processes: each does its share of the work, by itself."""
    with working_as(ALONE):
        mine = {number: _attempt(work[number]) for number in range(processes.rank, len(work), processes.size)}
    for theirs in processes.share(mine):
        yield from theirs.items()


def _attempt(one: Work) -> Any:
    try:
        return one()
    except MiniBertError as error:
        return Failed(str(error))


def _serve(one: Work, plugins: Sequence[Path]) -> Any:
    """In the process: the user's own words first, then the work."""
    global _importing
    from ..plugins import import_file

    try:
        _importing = True
        for file in plugins:
            import_file(file)
    except MiniBertError as error:
        return Failed(str(error))
    finally:
        _importing = False
    return _attempt(one)
