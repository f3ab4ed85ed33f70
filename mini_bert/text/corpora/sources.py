"""The sources of text that commands read: files, folders, patterns, standard input, and registered names.

How a file is read follows from its ending: HTML without its marks, tables row by row, anything else line by line.
"""

import glob
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Protocol

from ...errors import CorpusError
from ...late import complete
from ...readers import open_file
from ..tables import checked_encoding, is_table
from .file_source import BLOCK, FileSource, LineFragment, ReadingReport
from .html_source import HTML_ENDINGS, HTMLSource
from .table_source import TableSource

__all__ = ["BLOCK", "FileReading", "FileSource", "LineFragment", "ReadingReport", "Source", "find_sources",
           "numbered_texts", "paragraphs", "register_source"]


_HEAD = 256
_JSON = ".json"               # which is more often something else than a table


class Source(Protocol):
    """Named text. `size` is its length in bytes, if known before reading."""

    name: str
    size: int | None

    def lines(self, report: ReadingReport, strict: bool) -> Iterator[str]:
        """The lines without their ends; blank lines separate documents."""


@dataclass(frozen=True)
class FileReading:
    """How files are read: of a folder only those that match a pattern of `include`, and, with `skip`, without those
    that cannot be read; of tables the column `text_column`. Text is UTF-8, or in `encoding`."""

    include: tuple[str, ...] = ()
    text_column: str | None = None
    skip: bool = False
    encoding: str | None = None

    def __post_init__(self) -> None:
        if self.encoding is not None:
            checked_encoding(self.encoding)

    def open(self, name: str, *, named: bool = True) -> Source:
        """The source of a file; one that is not `named` is a member of a folder or fits a pattern."""
        optional, suffix = self.skip and not named, Path(name).suffix.lower()
        if is_table(name) and (suffix != _JSON or self.text_column is not None or _begins_with_list(name)):
            return TableSource(name, self.text_column, encoding=self.encoding, optional=optional)
        return (HTMLSource if suffix in HTML_ENDINGS else FileSource)(name, encoding=self.encoding, optional=optional)

    def of_folder(self, folder: Path) -> list[Source]:
        """The files of a folder and of its subfolders, without hidden ones."""
        found = [file for file in sorted(folder.rglob("*"), key=str) if file.is_file()
                 and not any(part.startswith(".") for part in file.relative_to(folder).parts)]
        if not found:
            raise CorpusError(f"The folder {folder} has no files.")
        chosen = [file for file in found if not self.include or any(
            fnmatch(name, pattern) for pattern in self.include for name in (file.name, str(file.relative_to(folder))))]
        if not chosen:
            raise CorpusError(f"None of the {len(found):,} files in {folder} matches {' or '.join(self.include)}.")
        return [self.open(str(file), named=False) for file in chosen]


_registered: dict[str, Callable[[str], Source]] = {}       # prefix -> function that opens such a name


def register_source(prefix: str, open_source: Callable[[str], Source]) -> None:
    """Open names equal to `prefix`, or starting with it if it ends in a colon, with this function."""
    _registered[prefix] = open_source


def find_sources(names: "Iterable[str | Source]", reading: FileReading | None = None) -> list[Source]:
    """The sources of these names: files, folders, patterns with * or ?, "-", registered names; sources stay."""
    complete("names of data")
    reading = reading or FileReading()
    sources: list[Source] = []
    for name in names:
        if not isinstance(name, str):
            sources.append(name)
            continue
        path = Path(name)
        registered = next((known for known in _registered if name == known or (known.endswith(":")
                                                                          and name.startswith(known))), None)
        if registered is not None and not path.exists():
            sources.append(_registered[registered](name))
        elif name == "-" or path.is_file() or path.is_fifo():
            sources.append(reading.open(name))
        elif name and path.is_dir():
            sources += reading.of_folder(path)
        elif glob.has_magic(name):
            files = sorted(file for file in glob.glob(name, recursive=True) if Path(file).is_file())  # noqa: PTH207
            if not files:
                raise CorpusError(f"No file matches {name}.")
            sources += [reading.open(file, named=False) for file in files]
        else:
            raise CorpusError(f"There is no file or folder {name}.")
    if not sources:
        raise CorpusError("No text was given; name files, folders or patterns.")
    return sources


def _begins_with_list(name: str) -> bool:
    with open_file(name, CorpusError) as file:
        return file.read(_HEAD).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")


def numbered_texts(source: Source) -> Iterator[tuple[int, str]]:
    """(number from 1, text) of each row of a table, and of each line of anything else."""
    if isinstance(source, TableSource):
        return source.rows()
    return enumerate(source.lines(ReadingReport(), strict=False), 1)


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
