"""Reading text: files, folders, globs, compressed files, standard input; a paragraph a line.

Memory is bounded whatever is read: text is taken in blocks, and a line longer than a block is cut into parts,
at spaces where it has some. Bytes that are not UTF-8 are replaced and counted, and the first of them is reported
with its place.
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

BLOCK = 1 << 20               # bytes read at a time, and the longest paragraph
_ESCAPED = re.compile("[\udc80-\udcff]")      # what surrogateescape makes of an invalid byte
_ARCHIVES = {".gz": "gzip", ".xz": "lzma", ".bz2": "bz2"}      # the module that opens them


@dataclass
class ReadingReport:
    """What reading met: bytes so far, invalid bytes, and where the first of them was."""

    bytes_read: int = 0
    invalid: int = 0
    first_invalid: str | None = None


class Part(str):
    """A part of a line that is too long to be read at once; it is not a paragraph of its own."""

    __slots__ = ()


class Source(Protocol):
    """Some text with a name. `size` is its length in bytes, if that is known before it is read."""

    name: str
    size: int | None

    def lines(self, report: ReadingReport, strict: bool) -> Iterator[str]:
        """Its lines, without their ends; blank ones separate documents, and a `Part` is one of a longer line."""


class FileSource:
    """A file, compressed or not, or standard input for "-"."""

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


def _lines(file: IO[bytes], name: str, report: ReadingReport) -> Iterator[tuple[int, bytes, bool]]:
    """(place in the text, line, whether it is a part of a longer one) of a file."""
    rest, place, first, part = b"", 0, True, False
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
    """The place, or where the character begins that it would cut in two."""
    return next((cut for cut in range(place, place - 4, -1) if line[cut] & 0xC0 != 0x80), place)


def _decoded(lines: Iterable[tuple[int, bytes, bool]], name: str, report: ReadingReport,
             strict: bool) -> Iterator[str]:
    for place, line, part in lines:
        text = _text(place, line, name, report, strict).strip()
        if not part:
            yield text
        elif text:
            yield Part(text)


def _text(place: int, line: bytes, name: str, report: ReadingReport, strict: bool) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"{name}, byte {place + error.start}"
        if strict:
            raise CorpusError(f"{where} is not UTF-8; without --strict it would be replaced.") from None
        report.invalid += len(_ESCAPED.findall(line.decode("utf-8", "surrogateescape")))
        report.first_invalid = report.first_invalid or where
        return line.decode("utf-8", "replace")


_named: dict[str, Callable[[str], Source]] = {}       # prefix -> what opens such a name


def register_source(prefix: str, open_source: Callable[[str], Source]) -> None:
    """Names that begin with `prefix`, which ends in a colon, or that are it, are opened by this."""
    _named[prefix] = open_source


def find_sources(names: Iterable[str]) -> list[Source]:
    """What the names name: files, folders with all their files, patterns with * or ?, "-", and registered names."""
    sources: list[Source] = []
    for name in names:
        path = Path(name)
        registered = next((known for known in _named if name == known or (known.endswith(":")
                                                                          and name.startswith(known))), None)
        if registered is not None and not path.exists():
            sources.append(_named[registered](name))
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
