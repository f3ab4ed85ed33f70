"""Reading text: files, folders, globs, compressed files, standard input; a paragraph a line.

Memory is bounded whatever is read: text is taken in blocks, and a line longer than a block is cut at a
space. Bytes that are not UTF-8 are replaced, counted, and the first of them is reported with its place.
"""

import glob
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, Protocol

from ..errors import CorpusError

BLOCK = 1 << 20               # bytes read at a time, and the longest paragraph
_ARCHIVES = {".gz": "gzip", ".xz": "lzma", ".bz2": "bz2"}      # the module that opens them


@dataclass
class ReadingReport:
    """What reading met: bytes so far, invalid bytes, and where the first of them was."""

    bytes_read: int = 0
    invalid: int = 0
    first_invalid: str | None = None


class Source(Protocol):
    """Some text with a name. `size` is its length in bytes, if that is known before it is read."""

    name: str
    size: int | None

    def lines(self, report: ReadingReport, strict: bool) -> Iterator[str]:
        """Its lines, without their ends; blank ones separate documents."""


class FileSource:
    """A file, compressed or not, or standard input for "-"."""

    def __init__(self, name: str):
        self.name = name
        self.size = None if name == "-" or Path(name).suffix in _ARCHIVES else Path(name).stat().st_size

    def lines(self, report: ReadingReport, strict: bool) -> Iterator[str]:
        try:
            with self._open() as file:
                yield from _decoded(_lines(file, self.name, report), self.name, report, strict)
        except CorpusError:
            raise
        except Exception as error:            # each archive has errors of its own for damage
            raise CorpusError(f"{self.name} cannot be read: {getattr(error, 'strerror', None) or error}.") from None

    def _open(self) -> IO[bytes]:
        if self.name == "-":
            return sys.stdin.buffer
        path = Path(self.name)
        if path.suffix not in _ARCHIVES:
            return path.open("rb")
        opened: IO[bytes] = import_module(_ARCHIVES[path.suffix]).open(path, "rb")
        return opened


def _lines(file: IO[bytes], name: str, report: ReadingReport) -> Iterator[tuple[int, bytes]]:
    """(place in the text, line) of a file, long lines in parts."""
    rest, place, first = b"", 0, True
    while block := file.read(BLOCK):
        report.bytes_read += len(block)
        if first and b"\0" in block[:8192] and not block.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise CorpusError(f"{name} is a binary file: it has a zero byte at {block.index(0)}.")
        if first and block.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise CorpusError(f"{name} is UTF-16; save it as UTF-8.")
        if first:
            without = block.removeprefix(b"\xef\xbb\xbf")          # a byte-order mark is no text
            place, block = len(block) - len(without), without
        first = False
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            yield place, line
            place += len(line) + 1
        while len(rest) > BLOCK:
            cut = rest.rfind(b" ", 0, BLOCK) + 1 or BLOCK
            yield place, rest[:cut]
            place, rest = place + cut, rest[cut:]
    if rest:
        yield place, rest


def _decoded(lines: Iterable[tuple[int, bytes]], name: str, report: ReadingReport, strict: bool) -> Iterator[str]:
    for place, line in lines:
        try:
            yield line.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            where = f"{name}, byte {place + error.start}"
            if strict:
                raise CorpusError(f"{where} is not UTF-8; without --strict it would be replaced.") from None
            text = line.decode("utf-8", "replace")
            report.invalid += text.count("\ufffd")
            report.first_invalid = report.first_invalid or where
            yield text.strip()


_named: dict[str, Callable[[str], Source]] = {}       # prefix -> what opens such a name


def register_source(prefix: str, open_source: Callable[[str], Source]) -> None:
    """Names that begin with `prefix` are opened by this."""
    _named[prefix] = open_source


def find_sources(names: Iterable[str]) -> list[Source]:
    """What the names name: files, folders with all their files, patterns with * or ?, "-", and registered names."""
    sources: list[Source] = []
    for name in names:
        path = Path(name)
        registered = next((prefix for prefix in _named if name.startswith(prefix)), None)
        if registered is not None and not path.exists():
            sources.append(_named[registered](name))
        elif name == "-" or path.is_file():
            sources.append(FileSource(name))
        elif name and path.is_dir():
            files = sorted(str(file) for file in path.rglob("*") if file.is_file()
                           and not any(part.startswith(".") for part in file.relative_to(path).parts))
            if not files:
                raise CorpusError(f"The folder {name} has no files.")
            sources += map(FileSource, files)
        elif glob.has_magic(name):
            files = sorted(file for file in glob.glob(name, recursive=True) if Path(file).is_file())  # noqa: PTH207
            if not files:
                raise CorpusError(f"No file matches {name}.")
            sources += map(FileSource, files)
        else:
            raise CorpusError(f"There is no file or folder {name}.")
    if not sources:
        raise CorpusError("No text was named.")
    return sources


def paragraphs(sources: Iterable[Source], report: ReadingReport, strict: bool = False) -> Iterator[str | None]:
    """All paragraphs in order, with None between documents (never two in a row, and none at the ends)."""
    waiting, started = False, False
    for source in sources:
        waiting = started
        for line in source.lines(report, strict):
            if not line:
                waiting = started
                continue
            if waiting:
                yield None
                waiting = False
            started = True
            yield line


def _open_pydocs(name: str) -> Source:
    from .pydocs import PydocsSource  # not above: it imports from here, and holds all of pydoc's topics

    if name != PydocsSource.name:
        raise CorpusError(f"There is no file or folder {name}.")
    return PydocsSource()


register_source("pydocs", _open_pydocs)
