"""Directories that appear whole or not at all.

A claim is a locked file `.NAME.mini-bert` beside the directory NAME. It holds a random word, which is in the names of
everything that the claim makes beside NAME:

    .NAME.WORD.new     the directory being filled; after an exchange, the old one, which is going
    .NAME.WORD.old     the old directory, where names cannot be exchanged in one step

The word is on disk before either directory is made. So whoever takes a claim that a killed process has left knows
exactly what that process made, and nothing else is ever removed: `.new` goes, and `.old` takes its name back if NAME
is missing. A living process holds the lock of its claim, and another one is refused before it changes anything.
"""

import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from errno import EEXIST, ENOTDIR
from pathlib import Path
from secrets import token_hex

from ..errors import CheckpointError, MiniBertError
from ..interrupts import held_interrupts
from .exchange import exchange
from .locks import is_at, is_own_file, try_lock
from .writing import sync_directory, write_files

_SUFFIX = ".mini-bert"
_WORD = re.compile(rb"[0-9a-f]{16}\n")
_OURS = re.compile(rb"[0-9a-f]{0,16}\n?")         # the word, or the part of it that a crash allowed


class Claim:
    """The right of this process to make, replace or remove one directory; see `claimed`."""

    def __init__(self, target: Path, handle: int, error: type[MiniBertError]):
        self.target, self._handle, self._error = target, handle, error
        self._new = self._old = target            # named by `_begin`

    @contextmanager
    def filled(self, check: Callable[[Path], None] = lambda folder: None) -> Iterator[Path]:
        """An empty directory to fill. When the block ends without an error, it becomes the target.

        If there is a target already, `check` may refuse to replace it; otherwise the two are exchanged, and the old
        directory is removed.
        """
        try:
            self._begin()
            self._new.mkdir()
            yield self._new
            for folder, _, _ in os.walk(self._new):
                sync_directory(Path(folder))
            with held_interrupts():
                self._publish(check)
        except OSError as reason:
            raise self._failed(reason) from reason
        except CheckpointError as failure:
            if isinstance(failure.__cause__, OSError):        # the sentence of write_files names a temporary directory
                raise self._failed(failure.__cause__) from failure.__cause__
            raise
        finally:
            self._clear()

    def remove(self) -> None:
        """Remove the target. It loses its name first, so that no part of it is ever seen."""
        try:
            self._begin()
            self.target.rename(self._new)
            sync_directory(self.target.parent)
        except OSError as reason:
            raise self._error(f"Cannot remove {self.target}: {reason.strerror or reason}.") from reason
        finally:
            self._clear()

    def recover(self) -> None:
        """Remove or restore what a killed process has left."""
        content = os.pread(self._handle, 100, 0) if hasattr(os, "pread") else os.read(self._handle, 100)
        if not _OURS.fullmatch(content):
            raise OSError(EEXIST, f"{self.target.parent / _claim_name(self.target)} is in the way")
        if _WORD.fullmatch(content):
            self._name(content[:16].decode())
            self._clear()

    def _begin(self) -> None:
        word = token_hex(8)
        os.lseek(self._handle, 0, os.SEEK_SET)
        os.write(self._handle, word.encode() + b"\n")
        os.fsync(self._handle)
        sync_directory(self.target.parent)
        self._name(word)

    def _name(self, word: str) -> None:
        name = self.target.name[:100]
        self._new, self._old = (self.target.parent / f".{name}.{word}.{kind}" for kind in ("new", "old"))

    def _publish(self, check: Callable[[Path], None]) -> None:
        if not os.path.lexists(self.target):
            self._new.rename(self.target)
        else:
            if not self.target.is_dir():
                raise OSError(ENOTDIR, "it is not a directory")
            check(self.target)
            shutil.copymode(self.target, self._new)
            if not exchange(self._new, self.target):
                self.target.rename(self._old)
                self._new.rename(self.target)         # if this fails, `_clear` puts the old one back
        sync_directory(self.target.parent)

    def _clear(self) -> None:
        with held_interrupts():
            if _is_directory(self._old) and not os.path.lexists(self.target):
                self._old.rename(self.target)
        for path in (self._new, self._old):
            if path != self.target and _is_directory(path):
                shutil.rmtree(path, ignore_errors=True)

    def _failed(self, reason: OSError) -> MiniBertError:
        return self._error(f"Cannot write {self.target}: {reason.strerror or reason}.")


@contextmanager
def claimed(target: str | os.PathLike[str], busy: MiniBertError,
            error: type[MiniBertError] = CheckpointError) -> Iterator[Claim]:
    """Claim a directory, which need not exist, and recover what a killed process left; raise `busy` if it is claimed.

    Missing parents are made, and removed again if the target is not made.
    """
    place = Path(os.path.realpath(target))
    missing = [parent for parent in place.parents if not parent.exists()]
    file = place.parent / _claim_name(place)
    existing = next(path for path in (place, *place.parents) if os.path.lexists(path))
    if not existing.is_dir():
        raise error(f"{target} cannot be a directory: {existing} is a file.")
    try:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            handle = _open(file, busy)
        except OSError as reason:
            raise error(f"Cannot write {place}: {reason.strerror or reason}.") from reason
        try:
            claim = Claim(place, handle, error)
            try:
                claim.recover()
            except OSError as reason:
                os.close(handle)
                handle = -1
                raise error(f"Cannot write {place}: {reason.strerror or reason}.") from reason
            yield claim
        finally:
            if handle >= 0:
                with suppress(OSError):
                    file.unlink()             # while it is locked, so that nobody holds a lock on a removed file
                os.close(handle)
    finally:
        if not place.exists():
            for parent in missing:
                with suppress(OSError):
                    parent.rmdir()


def save_files(directory: Path, contents: Mapping[str, bytes | Iterable[bytes | memoryview]]) -> None:
    """Write files into a directory; if there is none, it appears with all of them."""
    if os.path.lexists(directory):
        recover(directory)
        write_files(directory, contents)
    else:
        with claimed(directory, CheckpointError(f"Another process is writing {directory}.")) as claim, \
                claim.filled() as folder:
            write_files(folder, contents)


def remove_directory(target: Path, busy: MiniBertError) -> None:
    """Remove a directory that this project has made."""
    with claimed(target, busy) as claim:
        claim.remove()


def recover(target: Path) -> None:
    """Recover what killed processes have left of a directory, and of the directories in it."""
    place = Path(os.path.realpath(target))
    inside = [place / file.name[1 : -len(_SUFFIX)] for file in sorted(place.glob(f".*{_SUFFIX}"))]
    for path in (place, *inside):
        if (path.parent / _claim_name(path)).exists():
            with suppress(MiniBertError), claimed(path, CheckpointError(f"{path} is being written.")):
                pass


def _claim_name(target: Path) -> str:
    return f".{target.name}{_SUFFIX}"


def _open(file: Path, busy: MiniBertError) -> int:
    """The claim's file, locked; of two processes that come at once, one gets it."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    while True:
        handle = os.open(file, flags, 0o600)
        if not is_own_file(os.fstat(handle)):
            os.close(handle)
            raise OSError(EEXIST, f"{file} is in the way")
        if not try_lock(handle):
            os.close(handle)
            raise busy
        if is_at(handle, file):
            return handle
        os.close(handle)                      # its owner has just finished, and removed it


def _is_directory(path: Path) -> bool:
    """Is there a directory, and not a link to one?"""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False
