"""A shim around the file operations of this process: it counts them, and at the n-th it ends the process or fails.

Counted are opening for writing, writing, fsync, rename, exchange, unlink, mkdir, rmdir and chmod, wherever in Python
they are called. A write that is stopped has written half of its data.
"""

import builtins
import errno
import io
import os
from collections.abc import Callable
from typing import Any

from mini_bert.files import claims

STOPPED = 77                                   # the exit code of a process that the shim has ended
_CALLS = ("write", "fsync", "rename", "replace", "unlink", "remove", "mkdir", "rmdir", "chmod", "truncate", "ftruncate")
_NEEDS_SPACE = {"open", "write", "fsync", "mkdir"}


class Shim:
    """Installed for the rest of the process: meant for a forked child."""

    def __init__(self, stop_at: int | None = None, full_from: int | None = None, exchange: bool = True):
        self.stop_at, self.full_from, self.count = stop_at, full_from, 0
        for name in _CALLS:
            setattr(os, name, self._counted(name, getattr(os, name)))
        self._os_open, self._io_open = os.open, io.open
        os.open = self._open_handle
        io.open = builtins.open = self._open_file
        swap = claims.exchange if exchange else lambda first, second: False
        claims.exchange = self._counted("exchange", swap) if exchange else swap

    def step(self, name: str, before: Callable[[], object] = lambda: None) -> None:
        """One operation more; `before` is what a stopped one has done already."""
        self.count += 1
        if self.count == self.stop_at:
            before()
            os._exit(STOPPED)
        if self.full_from is not None and self.count >= self.full_from and name in _NEEDS_SPACE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _counted(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            self.step(name)
            return real(*arguments, **options)
        return call

    def _open_handle(self, path: Any, flags: int, *arguments: Any, **options: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            self.step("open")
        return self._os_open(path, flags, *arguments, **options)

    def _open_file(self, file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if not set(mode) & set("wax+") or isinstance(file, int):
            return self._io_open(file, mode, *arguments, **options)
        self.step("open")
        return _Written(self._io_open(file, mode, *arguments, **options), self)


class _Written:
    """A file open for writing."""

    def __init__(self, file: Any, shim: Shim):
        self._file, self._shim = file, shim

    def write(self, data: Any) -> int:
        def half() -> None:
            self._file.write(data[: len(data) // 2])
            self._file.flush()

        self._shim.step("write", half)
        return self._file.write(data)

    def writelines(self, parts: Any) -> None:
        for part in parts:
            self.write(part)

    def __enter__(self) -> "_Written":
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
