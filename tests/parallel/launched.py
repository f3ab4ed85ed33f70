"""Commands that mpirun starts, with the MPI that stands beside this Python."""

import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

MPIRUN = Path(sys.executable).with_name("mpirun")
PROGRAM = [sys.executable, "-m", "mini_bert"]
MISSING = "" if find_spec("mpi4py") and MPIRUN.exists() else \
    "mpi4py and an MPI are not installed beside this Python: make mpi"
# as root, and with more processes than cores, which is how the tests run; and time to save before the launcher kills
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "PRTE_MCA_odls_base_sigkill_timeout": "60"}
_LONGEST = 120                # seconds of a command


class Launched:
    """mpirun with some arguments, its output in files: what it starts may outlive it, and would hold a pipe open."""

    def __init__(self, folder, *arguments, environment=None):
        self._out = folder / f"output-{time.monotonic_ns()}"
        with self._out.open("wb") as out:
            self._process = subprocess.Popen([MPIRUN, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=out,
                                             stderr=out, env={**os.environ, **ENVIRONMENT, **(environment or {})})
        self.pid = self._process.pid

    def wait(self, longest=_LONGEST):
        """Its exit code, and everything that was printed."""
        try:
            code = self._process.wait(longest)
        except subprocess.TimeoutExpired:
            for pid in self.processes():
                os.kill(pid, signal.SIGKILL)
            self._process.kill()
            raise
        return code, self._out.read_text("utf-8", "replace")

    def processes(self):
        """The process ids of the ranks, in their order."""
        return sorted(pid for pid in _descendants(self.pid) if b"mini_bert" in _command(pid).split(b"\0")
                      and Path(os.fsdecode(_command(pid).split(b"\0")[0])).name.startswith("python"))


def run(folder, n, *arguments, environment=None):
    """Run `mini-bert ARGUMENTS` in n processes to its end: the exit code, and what was printed."""
    return Launched(folder, "-n", n, *PROGRAM, *arguments, environment=environment).wait()


def until(what, longest=_LONGEST):
    """Wait until `what()` is true."""
    end = time.monotonic() + longest
    while not what():
        assert time.monotonic() < end, "it has not come to that"
        time.sleep(0.02)


def _descendants(pid):
    children = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found, waiting = [], [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
