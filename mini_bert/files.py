"""Reading JSON, locking, and atomic writes: a crash leaves the old file or the new one, never half of one."""

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

try:
    import fcntl
except ImportError:           # Windows
    fcntl = None  # type: ignore[assignment]

from .errors import CheckpointError, MiniBertError
from .interrupts import held_interrupts


def read_json(path: Path, error: type[MiniBertError]) -> dict[str, Any] | None:
    """The object in a JSON file, or None if there is no such file; other content raises `error`."""
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as reason:
        raise error(f"{path} cannot be read: {reason}.") from None
    if not isinstance(content, dict):
        raise error(f"{path} must contain a JSON object.")
    return content


def write_files(directory: Path, contents: Mapping[str, bytes | Iterable[bytes | memoryview]]) -> None:
    """Write each `name: content` to a temporary file, sync it and rename it; content is bytes, or parts of them.

    All files are complete on disk before the first one is renamed.
    """
    staged: list[tuple[Path, Path]] = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, data in contents.items():
            temporary = directory / f".{name}.{token_hex(8)}"
            staged.append((temporary, directory / name))
            with temporary.open("xb") as file:
                file.writelines([data] if isinstance(data, bytes) else data)
                file.flush()
                os.fsync(file.fileno())
        while staged:
            temporary, final = staged[0]
            temporary.replace(final)
            staged.pop(0)
        sync_directory(directory)
    except OSError as error:
        raise CheckpointError(f"Cannot write to {directory}: {error.strerror or error}.") from error
    finally:
        for temporary, _ in staged:
            temporary.unlink(missing_ok=True)


def sync_directory(directory: Path) -> None:
    """Make renames inside a directory durable."""
    if os.name == "posix":      # elsewhere a directory cannot be opened
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def locked(directory: Path, refusal: MiniBertError) -> Iterator[None]:
    """Lock a directory for this process; raise `refusal` if another one holds it. The lock ends with the process."""
    if fcntl is None:
        yield
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise refusal from None
        yield
    finally:
        os.close(handle)


def replace_directory(finished: Path, target: Path) -> None:
    """Rename a finished directory to `target`; an older directory of that name is removed afterwards."""
    old = _set_aside(target)
    with held_interrupts():
        shutil.rmtree(old, ignore_errors=True)
        if target.exists():
            target.rename(old)
        try:
            finished.rename(target)
        except OSError:
            restore_directory(target)
            raise
        sync_directory(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def restore_directory(target: Path) -> None:
    """Put the older directory back if a crash occurred between the two renames of `replace_directory`."""
    if _set_aside(target).exists() and not target.exists():
        _set_aside(target).rename(target)


def _set_aside(target: Path) -> Path:
    return target.parent / f".{target.name}.replaced"
