"""Locks that are released when the process that holds them ends, however it ends."""

import os
import stat
from pathlib import Path
from types import TracebackType

try:
    import fcntl
except ImportError:           # Windows
    fcntl = None  # type: ignore[assignment]

from ..errors import MiniBertError

CAN_LOCK = fcntl is not None


class Lock:
    """An open file or directory that this process has locked."""

    def __init__(self, handle: int | None):
        self.handle = handle

    @property
    def held(self) -> bool:
        return self.handle is not None

    def release(self) -> None:
        handle, self.handle = self.handle, None
        if handle is not None:
            os.close(handle)

    def __enter__(self) -> "Lock":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.release()

    def __del__(self) -> None:
        self.release()


def lock_directory(directory: Path, refusal: MiniBertError) -> Lock:
    """Lock a directory for this process; raise `refusal` if it is locked already.

    The lock is the directory's, not its name's: it stays when the directory is renamed.
    """
    if fcntl is None:
        return Lock(None)
    while True:
        handle = os.open(directory, os.O_RDONLY)
        if not try_lock(handle):
            os.close(handle)
            raise refusal
        if is_at(handle, directory):
            return Lock(handle)
        os.close(handle)                      # another directory has taken the name meanwhile


def try_lock(handle: int) -> bool:
    """Lock an open file; False if another handle holds the lock."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_own_file(status: os.stat_result) -> bool:
    """Is it a regular file of this user?"""
    return stat.S_ISREG(status.st_mode) and (not hasattr(os, "geteuid") or status.st_uid == os.geteuid())


def is_at(handle: int, path: Path) -> bool:
    """Is the open file still the one of this name?"""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
