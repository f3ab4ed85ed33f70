"""Text in a file, compressed or not; each line is a paragraph.

Memory is bounded: text is read in blocks, and a line longer than a block is split into fragments, at spaces if
possible. The encoding is UTF-8, or what a byte-order mark says. Bytes that are not UTF-8 are replaced and counted, and
the position of the first one is reported.
"""

import codecs
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import IO, Protocol

from ...errors import CorpusError, MiniBertError
from ..tables.table import MARKS

BLOCK = 1 << 20               # bytes read at a time, and of the longest paragraph
_ESCAPED = re.compile("[\udc80-\udcff]")      # invalid bytes, decoded with surrogateescape
_ARCHIVES = {".gz": "gzip", ".xz": "lzma", ".bz2": "bz2"}      # suffix: module that opens it


@dataclass
class ReadingReport:
    """Statistics of reading: bytes so far, invalid bytes, the position of the first one, and files that were left out
    because they cannot be read, with the reason."""

    bytes_read: int = 0
    invalid: int = 0
    first_invalid: str | None = None
    skipped: dict[str, str] = field(default_factory=dict)


class LineFragment(str):
    """A fragment of a line longer than a block; not a paragraph of its own."""

    __slots__ = ()


class Blocks(Protocol):
    """A file, or what gives the blocks of one."""

    def read(self, size: int, /) -> bytes:
        """At most about this many further bytes; none at the end."""


class FileSource:
    """A file; "-" is standard input. An `optional` one is left out if it cannot be read, and the report says so.
    `encoding` is that of a file without a byte-order mark; None is UTF-8."""

    def __init__(self, name: str, *, encoding: str | None = None, optional: bool = False):
        self.name, self.encoding, self.optional = name, encoding, optional
        known = name != "-" and Path(name).suffix not in _ARCHIVES and Path(name).is_file()
        self.size = Path(name).stat().st_size if known else None

    def lines(self, report: ReadingReport, strict: bool) -> Iterator[str]:
        """The lines without their ends; blank lines separate documents."""
        try:
            yield from self._read(report, strict)
        except MiniBertError as error:
            if not self.optional:
                raise CorpusError(str(error)) from None
            report.skipped[self.name] = str(error)
        except Exception as error:            # each compression module has its own errors
            said = f"{self.name} cannot be read: {getattr(error, 'strerror', None) or error}."
            if not self.optional:
                raise CorpusError(said) from None
            report.skipped[self.name] = said

    def _read(self, report: ReadingReport, strict: bool) -> Iterator[str]:
        with self._open() as file:
            yield from _decoded(_lines(file, self.name, report, self._encoding()), self.name, report, strict)

    def _encoding(self) -> str:
        """What the file's content is to be read as if it has no byte-order mark."""
        return "utf-8" if self.encoding is None else codecs.lookup(self.encoding).name

    def _open(self) -> IO[bytes]:
        if self.name == "-":
            return sys.stdin.buffer
        path = Path(self.name)
        if path.suffix not in _ARCHIVES:
            return path.open("rb")
        opened: IO[bytes] = import_module(_ARCHIVES[path.suffix]).open(path, "rb")
        return opened


class _Transcoded:
    """The blocks of a file in another encoding, as UTF-8."""

    def __init__(self, file: Blocks, encoding: str, first: bytes):
        self.file, self.first = file, first
        self.decoder = codecs.getincrementaldecoder(encoding)()

    def read(self, size: int, /) -> bytes:
        while block := (self.first or self.file.read(size)):
            self.first = b""
            if text := self.decoder.decode(block):
                return text.encode("utf-8", "replace")
        return self.decoder.decode(b"", final=True).encode("utf-8", "replace")


def _as_utf8(file: Blocks, name: str, usual: str) -> tuple[bytes, bytes, Blocks]:
    """(byte-order mark of UTF-8 if there is one, first block, the rest), as UTF-8; a binary file is refused."""
    first = file.read(BLOCK)
    mark, encoding = next(((mark, found) for mark, found in MARKS if first.startswith(mark)), (b"", usual))
    if encoding != "utf-8":
        file = _Transcoded(file, encoding, first[len(mark) :])
        return b"", file.read(BLOCK), file
    if b"\0" in first[:8192]:
        raise CorpusError(f"{name} is a binary file: byte {first.index(0)} is zero.")
    return mark, first[len(mark) :], file


def _lines(file: Blocks, name: str, report: ReadingReport, usual: str) -> Iterator[tuple[int, bytes, bool]]:
    """(byte offset, line, whether it is a fragment of a longer line) of a file."""
    mark, block, file = _as_utf8(file, name, usual)
    rest, place, part = b"", len(mark), False
    report.bytes_read += len(mark)
    while block:
        report.bytes_read += len(block)
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            yield place, line, part
            place, part = place + len(line) + 1, False
        while len(rest) > BLOCK:
            cut = rest.rfind(b" ", 0, BLOCK) + 1 or _before_character(rest, BLOCK)
            part = True
            yield place, rest[:cut], part
            place, rest = place + cut, rest[cut:]
        block = file.read(BLOCK)
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
