"""A command that mpirun has started: the processes find each other, one of them speaks, and none outlives a fault.

The first process displays, prints and writes. An exception in any process ends all of them, with that process' name and
message. A signal for mpirun reaches every process, and is agreed on at the end of a step (training/trainer.py).
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from time import sleep
from typing import IO, TYPE_CHECKING, Any, NoReturn

from ..errors import ConfigError, MiniBertError

if TYPE_CHECKING:
    from .mpi import OverMPI

# what the launchers of Open MPI, of MPICH and its relatives, and of SLURM leave in the environment
_LAUNCHED = ("OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "MPI_LOCALNRANKS")
_FIRST_SPEAKS = 1.0           # seconds that the others give the first process to say what is wrong everywhere
_together: list[int] = []            # the ranks of this process and those that it works with
_OTHERS_SAVE = 5.0
SILENCE, PATIENCE = "MINI_BERT_SILENCE", "MINI_BERT_PATIENCE"


def launched() -> bool:
    """Has mpirun, or a relative of it, started this process?"""
    return any(name in os.environ for name in _LAUNCHED)


@contextmanager
def launched_processes() -> Iterator[None]:
    """Join the others, if mpirun has started this process: inside, they are the `world()`."""
    if not launched():
        yield
        return
    if find_spec("mpi4py") is None:
        raise ConfigError("This process was started by mpirun, which needs mpi4py: pip install 'mini-bert[mpi]'.")
    import mpi4py  # not above: a process alone needs none of it

    from ..workers import share_cores
    from .heartbeat import Heartbeat
    from .hosts import differences, local_share
    from .processes import working_as

    mpi4py.rc.thread_level = "multiple"               # the heartbeat is a thread of its own
    os.environ.setdefault("OMPI_MCA_osc", "^ucx")     # which complains, and is not needed for memory in common
    from .mpi import OverMPI, everybody

    communicator, stream = everybody(), sys.stderr
    for name in _LAUNCHED:                            # a program that is started from here is alone
        os.environ.pop(name, None)
    if communicator.Get_size() == 1:
        yield
        return
    processes = OverMPI(communicator, _seconds(PATIENCE, float("inf")))
    try:
        with Heartbeat(processes, _seconds(SILENCE, 60.0)), working_as(processes):
            _together.extend(range(processes.size))
            share_cores(local_share(processes))
            for sentence in differences(processes):
                if processes.rank == 0:
                    print(f"mini-bert: {sentence}", file=stream, flush=True)
            with _silent(processes.rank > 0):
                yield
    except SystemExit:
        raise
    except BaseException as error:
        _end_all(processes, error, stream)


def require_alone() -> None:
    """Refuse a command that several processes would each run as a whole."""
    if len(_together) > 1:
        raise ConfigError("This command runs in one process; start it without mpirun. Several processes train and "
                          "measure: pretrain, resume, finetune, evaluate, lab.")


def _seconds(name: str, default: float) -> float:
    try:
        return float(os.environ.get(name, default))
    except ValueError:
        raise ConfigError(f"{name} must be a number of seconds, not {os.environ[name]!r}.") from None


@contextmanager
def _silent(wanted: bool) -> Iterator[None]:
    """Nothing is printed inside."""
    if not wanted:
        yield
        return
    before = sys.stdout, sys.stderr
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        sys.stdout = sys.stderr = nowhere
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before


def _end_all(processes: "OverMPI", error: BaseException, stream: IO[Any]) -> NoReturn:
    """Say what has happened here, and end all processes. What is wrong in all of them the first one says."""
    if isinstance(error, KeyboardInterrupt):
        sleep(_OTHERS_SAVE)                           # a signal has come to all: those with runs of their own save them
    elif processes.rank and isinstance(error, MiniBertError | OSError):
        sleep(_FIRST_SPEAKS)
    if isinstance(error, MiniBertError):
        shown = str(error)
    elif isinstance(error, KeyboardInterrupt):
        shown = "interrupted."
    else:
        import traceback

        shown = "".join(traceback.format_exception(error)).strip()
    name = "" if processes.rank == 0 and isinstance(error, MiniBertError) else f"{processes.name(processes.rank)}: "
    print(f"mini-bert: {name}{shown}", file=stream, flush=True)
    code = 2 if isinstance(error, MiniBertError) else 1
    processes.abort(code)
    os._exit(code)                                    # MPICH's launcher takes a moment
