"""Reading text from files, folders, patterns, compressed files and standard input; each line is a paragraph.

Memory is bounded: text is read in blocks, and a line longer than a block is split into fragments, at spaces if
possible. Bytes that are not UTF-8 are replaced and counted, and the position of the first one is reported.
"""

import glob
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, Protocol

from ...errors import CorpusError
from ...late import complete

BLOCK = 1 << 20               # bytes read at a time, and of the longest paragraph
_ESCAPED = re.compile("[\udc80-\udcff]")      # invalid bytes, decoded with surrogateescape
_ARCHIVES = {".gz": "gzip", ".xz": "lzma", ".bz2": "bz2"}      # suffix: module that opens it


@dataclass
class ReadingReport:
    """Statistics of reading: bytes so far, invalid bytes, and the position of the first one."""

    bytes_read: int = 0
    invalid: int = 0
    first_invalid: str | None = None


class LineFragment(str):
    """A fragment of a line longer than a block; not a paragraph of its own."""

    __slots__ = ()


class Source(Protocol):
    """Named text. `size` is its length in bytes, if known before reading."""

    name: str
    size: int | None

    def lines(self, report: ReadingReport, strict: bool) -> Iterator[str]:
        """The lines without their ends; blank lines separate documents."""


class FileSource:
    """A file, compressed or not; "-" is standard input."""

    def __init__(self, name: str):
        self.name = name
        known = name != "-" and Path(name).suffix not in _ARCHIVES and Path(name).is_file()
        self.size = Path(name).stat().st_size if known else None

    def lines(self, report: ReadingReport, strict: bool) -> Iterator[str]:
        try:
            with self._open() as file:
                yield from _decoded(_lines(file, self.name, report), self.name, report, strict)
        except CorpusError:
            raise
        except Exception as error:            # each compression module has its own errors
            raise CorpusError(f"{self.name} cannot be read: {getattr(error, 'strerror', None) or error}.") from None

    def _open(self) -> IO[bytes]:
        if self.name == "-":
            return sys.stdin.buffer
        path = Path(self.name)
        if path.suffix not in _ARCHIVES:
            return path.open("rb")
        opened: IO[bytes] = import_module(_ARCHIVES[path.suffix]).open(path, "rb")
        return opened


def _lines(file: IO[bytes], name: str, report: ReadingReport) -> Iterator[tuple[int, bytes, bool]]:
    """(byte offset, line, whether it is a fragment of a longer line) of a file."""
    rest, place, first, part = b"", 0, True, False
    while block := file.read(BLOCK):
        report.bytes_read += len(block)
        if first and b"\0" in block[:8192] and not block.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise CorpusError(f"{name} is a binary file: byte {block.index(0)} is zero.")
        if first and block.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise CorpusError(f"{name} is UTF-16; save it as UTF-8.")
        if first:
            without = block.removeprefix(b"\xef\xbb\xbf")          # byte-order mark
            place, block = len(block) - len(without), without
        first = False
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            yield place, line, part
            place, part = place + len(line) + 1, False
        while len(rest) > BLOCK:
            cut = rest.rfind(b" ", 0, BLOCK) + 1 or _before_character(rest, BLOCK)
            part = True
            yield place, rest[:cut], part
            place, rest = place + cut, rest[cut:]
    if rest:
        yield place, rest, part


def _before_character(line: bytes, place: int) -> int:
    """`place`, moved back to the start of the UTF-8 character that it would split."""
    return next((cut for cut in range(place, place - 4, -1) if line[cut] & 0xC0 != 0x80), place)


def _decoded(lines: Iterable[tuple[int, bytes, bool]], name: str, report: ReadingReport,
             strict: bool) -> Iterator[str]:
    for place, line, part in lines:
        text = _text(place, line, name, report, strict).strip()
        if not part:
            yield text
        elif text:
            yield LineFragment(text)


def _text(place: int, line: bytes, name: str, report: ReadingReport, strict: bool) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        position = f"{name}, byte {place + error.start}"
        if strict:
            raise CorpusError(f"{position} is not UTF-8; fix it, or leave out --strict to replace it.") from None
        report.invalid += len(_ESCAPED.findall(line.decode("utf-8", "surrogateescape")))
        report.first_invalid = report.first_invalid or position
        return line.decode("utf-8", "replace")


_registered: dict[str, Callable[[str], Source]] = {}       # prefix -> function that opens such a name


def register_source(prefix: str, open_source: Callable[[str], Source]) -> None:
    """Open names equal to `prefix`, or starting with it if it ends in a colon, with this function."""
    _registered[prefix] = open_source


def find_sources(names: Iterable[str]) -> list[Source]:
    """The sources of these names: files, folders (all their files), patterns with * or ?, "-", registered names."""
    complete("names of data")
    sources: list[Source] = []
    for name in names:
        path = Path(name)
        registered = next((known for known in _registered if name == known or (known.endswith(":")
                                                                          and name.startswith(known))), None)
        if registered is not None and not path.exists():
            sources.append(_registered[registered](name))
        elif name == "-" or path.is_file() or path.is_fifo():
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
        raise CorpusError("No text was given; name files, folders or patterns.")
    return sources


def paragraphs(sources: Iterable[Source], report: ReadingReport, strict: bool = False) -> Iterator[str | None]:
    """All paragraphs in order, with a single None between documents."""
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
    from .pydocs import PydocsSource  # here: it imports this module, and pydoc's topics are large

    if name != PydocsSource.name:
        raise CorpusError(f"There is no file or folder {name}.")
    return PydocsSource()


register_source("pydocs", _open_pydocs)
