"""Atomic writes: a crash leaves the old files or the new ones, never half of one, nor one new beside one old.

A rename replaces one file at once. Several that belong together, such as a model's config and weights, are complete on
disk under temporary names, and then the list of their renames takes the name `.mini-bert.renames`. If the process is
killed after that, whoever reads or writes the directory next does the renames that are left (`finish_renames`).
"""

import os
import re
import stat
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from ..errors import CheckpointError
from .locks import CAN_LOCK, is_at, is_own_file, try_lock

RENAMES = ".mini-bert.renames"        # a line for each temporary name, and one for the name that it takes
_LONGEST_LIST = 1 << 20

Content = bytes | Iterable[bytes | memoryview]


def write_files(directory: Path, contents: Mapping[str, Content]) -> None:
    """Write each `name: content` to a temporary file, sync it and rename it; content is bytes, or parts of them.

    All files are complete on disk before the first one is renamed. A link, a device, a pipe or a directory that has one
    of the names is refused: a rename would put a file in its place.
    """
    staged: dict[str, Path] = {}
    try:
        with ExitStack() as stack:                    # closing a file writes what it still holds, and can fail, too
            directory.mkdir(parents=True, exist_ok=True)
            finish_renames(directory)
            for name in contents:
                _require_replaceable(directory / name)
            for name, content in contents.items():
                staged[name] = _written(directory, name, content, stack)
            together = len(staged) > 1 and any((directory / name).exists() for name in staged)
            renames = dict(staged)
            if together:
                lines = [os.fsencode(part) for name, path in renames.items() for part in (path.name, name)]
                staged[RENAMES] = _written(directory, RENAMES, b"\n".join(lines), stack)
            if os.name == "nt":                       # an open file cannot be renamed there
                stack.close()
            if together:
                staged[RENAMES].replace(directory / RENAMES)
                sync_directory(directory)
                staged.clear()                        # from here on the files are the list's, even if a rename fails
            for name, path in renames.items():
                path.replace(directory / name)
            sync_directory(directory)
            if together:
                (directory / RENAMES).unlink()
    except OSError as error:
        raise CheckpointError(f"Cannot write to {directory}: {error.strerror or error}.") from error
    finally:
        for path in staged.values():                  # those that have not got their names
            with suppress(OSError):
                path.unlink()


def finish_renames(directory: Path) -> None:
    """Do the renames that a killed process has left undone, if there are any and this process may."""
    try:
        handle = os.open(directory / RENAMES, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return
    with suppress(OSError):
        if is_own_file(os.fstat(handle)) and try_lock(handle) and is_at(handle, directory / RENAMES):
            lines = [os.fsdecode(line) for line in os.read(handle, _LONGEST_LIST).split(b"\n")]
            if len(lines) % 2 == 0 and all(_is_temporary(*pair) for pair in _pairs(lines)):
                for temporary, name in _pairs(lines):
                    with suppress(FileNotFoundError):         # it has its name already
                        (directory / temporary).replace(directory / name)
                sync_directory(directory)
                (directory / RENAMES).unlink()
    os.close(handle)


def _pairs(lines: list[str]) -> Iterable[tuple[str, str]]:
    return zip(lines[::2], lines[1::2], strict=True)


def _is_temporary(temporary: str, name: str) -> bool:
    """Is this one of our temporary names for a file of that name?"""
    return Path(name).name == name and re.fullmatch(re.escape(f".{name[:100]}.") + r"[0-9a-f]{16}\.partial",
                                                    temporary) is not None


def _written(directory: Path, name: str, content: Content, stack: ExitStack) -> Path:
    """A file with this content under a temporary name, synced; locked until it has its own."""
    _remove_leftovers(directory, name)
    path, file = _create(directory, name)
    stack.enter_context(file)
    try:
        file.writelines([content] if isinstance(content, bytes) else content)
        file.flush()
        os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise
    return path


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
