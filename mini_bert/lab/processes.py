"""Several pieces of work at once, each in a process of its own with one thread: on few cores that is more efficient
than one piece of work with several threads.

A piece of work ends with its result, or with an error in a sentence. If this process is interrupted, those that are
under way are asked to stop, which saves a run, and are waited for.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from ..core.registry import plugin_paths
from ..errors import MiniBertError
from ..interrupts import broken_pipes_raise, children_without_interrupts, held_interrupts

Work = Callable[[], Any]                          # a partial of a function of a module: it is sent to the process


class Failed:
    """Work that ended with an error."""

    def __init__(self, reason: str):
        self.reason = reason


def done_in_turn(work: Sequence[Work]) -> Iterator[tuple[int, Any]]:
    """(number, result or Failed) of each piece of work, one after the other in this process."""
    for number, one in enumerate(work):
        yield number, _attempt(one)


def done_at_once(work: Sequence[Work], jobs: int, begins: Callable[[int], None]) -> Iterator[tuple[int, Any]]:
    """The same with up to `jobs` processes, in the order in which they end; `begins` hears of each beginning."""
    context, waiting = get_context("spawn"), list(enumerate(work))
    running: dict[Connection, tuple[int, Any]] = {}
    with broken_pipes_raise():
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    number, one = waiting.pop(0)
                    ours, theirs = context.Pipe(duplex=False)
                    process = context.Process(target=_serve, args=(theirs, one, plugin_paths()))
                    with held_interrupts(), children_without_interrupts():    # a half-started process would hang
                        process.start()
                    theirs.close()
                    running[ours] = number, process
                    begins(number)
                for ours in [one for one in wait(list(running)) if isinstance(one, Connection)]:
                    number, process = running.pop(ours)
                    try:
                        result = ours.recv()
                    except EOFError:
                        result = Failed("Its process was killed, perhaps because memory ran out.")
                    process.join()
                    ours.close()
                    yield number, result
        finally:
            for _, process in running.values():
                process.terminate()               # SIGTERM: a run finishes its step and saves
            for _, process in running.values():
                process.join()


def _attempt(one: Work) -> Any:
    try:
        return one()
    except MiniBertError as error:
        return Failed(str(error))


def _serve(out: Connection, one: Work, plugins: Sequence[Path]) -> None:
    """In the process: the user's own words first, then the work."""
    from ..plugins import import_file

    try:
        for file in plugins:
            import_file(file)
        result = _attempt(one)
    except KeyboardInterrupt:                     # a run that was asked to stop has saved
        return
    with suppress(BrokenPipeError):               # nobody waits for it any more
        out.send(result)
