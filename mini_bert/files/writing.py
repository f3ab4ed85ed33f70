"""Atomic writes: a crash leaves the old file or the new one, never half of one."""

import os
import re
import stat
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from ..errors import CheckpointError
from .locks import CAN_LOCK, is_at, try_lock


def write_files(directory: Path, contents: Mapping[str, bytes | Iterable[bytes | memoryview]]) -> None:
    """Write each `name: content` to a temporary file, sync it and rename it; content is bytes, or parts of them.

    All files are complete on disk before the first one is renamed. A link, a device, a pipe or a directory that has one
    of the names is refused: a rename would put a file in its place.
    """
    staged: list[tuple[Path, Path]] = []
    try:
        with ExitStack() as stack:                    # closing a file writes what it still holds, and can fail, too
            directory.mkdir(parents=True, exist_ok=True)
            for name in contents:
                _require_replaceable(directory / name)
            for name, data in contents.items():
                _remove_leftovers(directory, name)
                temporary, file = _create(directory, name)
                stack.enter_context(file)             # and so locked until it has its name
                staged.append((temporary, directory / name))
                file.writelines([data] if isinstance(data, bytes) else data)
                file.flush()
                os.fsync(file.fileno())
            if os.name == "nt":                       # an open file cannot be renamed there
                stack.close()
            while staged:
                temporary, final = staged[0]
                temporary.replace(final)
                staged.pop(0)
            sync_directory(directory)
    except OSError as error:
        raise CheckpointError(f"Cannot write to {directory}: {error.strerror or error}.") from error
    finally:
        for temporary, _ in staged:
            with suppress(OSError):
                temporary.unlink()


def _require_replaceable(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        kind = "directory" if stat.S_ISDIR(mode) else "link" if stat.S_ISLNK(mode) else "device or a pipe"
        raise CheckpointError(f"{path} is a {kind}, and is not replaced by a file; choose another name.")


def _create(directory: Path, name: str) -> tuple[Path, BinaryIO]:
    """A new file under a name that cannot be guessed, locked, so that nobody takes it for a leftover."""
    while True:
        path = directory / f".{name[:100]}.{token_hex(8)}.partial"
        file = path.open("xb")
        if try_lock(file.fileno()) and is_at(file.fileno(), path):
            return path, file
        file.close()


def _remove_leftovers(directory: Path, name: str) -> None:
    """Remove temporary files of this name whose process has been killed."""
    if not CAN_LOCK:
        return                                # it may still be alive
    pattern = re.compile(re.escape(f".{name[:100]}.") + r"[0-9a-f]{16}\.partial")
    with os.scandir(directory) as entries:
        found = [Path(entry.path) for entry in entries if pattern.fullmatch(entry.name)
                 and entry.is_file(follow_symlinks=False)]
    for path in found:
        with suppress(OSError):
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                if try_lock(handle):
                    path.unlink()
            finally:
                os.close(handle)


def sync_directory(directory: Path) -> None:
    """Make renames inside a directory durable."""
    if os.name == "posix":      # elsewhere a directory cannot be opened
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
