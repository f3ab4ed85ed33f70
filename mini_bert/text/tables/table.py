"""A table in memory, and which kind of file reads which name.

    @register("table", "csv")         a class with `endings`, `claims(head)` and `read(path, encoding)`

A file is read by the kind whose ending it has; where the ending says nothing, by the first kind that claims its
beginning. Cells stay as the file has them, text or a JSON value, until a column is asked for as text.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

from ...core.registry import make, words
from ...errors import DataError
from ...readers import open_file, read_bytes, shown

# byte-order marks, and what they say; that of UTF-32 begins with that of UTF-16
MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe\x00\x00", "utf-32-le"), (b"\x00\x00\xfe\xff", "utf-32-be"),
         (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
WESTERN = "cp1252"            # what Excel writes on most computers in Western Europe and America
_HEAD = 4096                  # bytes from which a kind is recognised


@dataclass(frozen=True)
class Table:
    """Rows of cells under names. `numbers` says where each row is in the file, counted in `unit`."""

    path: str
    kind: str                             # for a message: "CSV with ;"
    columns: list[str]
    rows: list[Sequence[Any]]
    numbers: list[int]
    unit: str = "line"
    named: bool = True                    # whether the file has names for its columns; otherwise they are 1, 2, ...

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> int:
        """The index of a column by its name, or by its number from 1 if no column has that name."""
        found = [i for i, known in enumerate(self.columns) if known == name] or \
            [i for i, known in enumerate(self.columns) if known.lower() == name.strip().lower()]
        if len(found) == 1:
            return found[0]
        if len(found) > 1:
            raise DataError(f"{shown(self.path)} has {len(found)} columns named {name!r}; name the column by its "
                            "number.")
        if name.strip().isdecimal() and 1 <= int(name) <= len(self.columns):
            return int(name) - 1
        raise DataError(f"{shown(self.path)} has no column {name[:100]!r}; its columns are "
                        f"{', '.join(self.columns[:20])}.")

    def text(self, row: int, column: int) -> str:
        """A cell as text without white space around it; a missing value is empty."""
        value = self.rows[row][column]
        if isinstance(value, list | tuple):
            raise self.error(row, f"{self.columns[column]} is a list, where text is needed")
        return self._text(row, column, value)

    def texts(self, row: int, column: int) -> tuple[str, ...] | None:
        """The items of a cell that is a list; None if it is not one."""
        value = self.rows[row][column]
        if not isinstance(value, list | tuple):
            return None
        return tuple(self._text(row, column, item) for item in value)

    def _text(self, row: int, column: int, value: Any) -> str:
        if isinstance(value, str):
            return value.strip()
        if value is None:
            return ""
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, int | float):
            return str(value)
        what = "an object" if isinstance(value, dict) else "of another type"
        raise self.error(row, f"{self.columns[column]} is {what}, where text is needed")

    def error(self, row: int, problem: str) -> DataError:
        """The error for a row that cannot be used, to be raised."""
        return DataError(f"{shown(self.path)}, {self.unit} {self.numbers[row]}: {problem}.")


class TableReader(ABC):
    """A kind of file."""

    endings: ClassVar[tuple[str, ...]]

    def claims(self, head: bytes) -> bool:
        """Does a file that begins so look like one of these?"""
        return False

    @abstractmethod
    def read(self, path: Path, encoding: str | None = None) -> Table:
        """The whole file; its text is UTF-8 if no `encoding` is given."""


def readers() -> list[TableReader]:
    """One of each kind."""
    found: list[TableReader] = [make("table", word) for word in words("table")]
    return found


def is_table(path: str | PathLike[str]) -> bool:
    """Does the name of a file end as that of a table does?"""
    suffix = Path(path).suffix.lower()
    return any(suffix in reader.endings for reader in readers())


def endings() -> list[str]:
    """All endings that tables have."""
    return [ending for reader in readers() for ending in reader.endings]


def read_columns(path: str | PathLike[str], encoding: str | None = None) -> Table:
    """The table in a file, of the kind that its name says, or that its content looks like."""
    place, known = Path(path), readers()
    reader = next((reader for reader in known if place.suffix.lower() in reader.endings), None)
    if reader is None:
        with open_file(place, DataError) as file:
            head = file.read(_HEAD)
        reader = next((reader for reader in known if reader.claims(head)), None)
    if reader is None:
        raise DataError(f"{shown(path)} is not a table that is known here; the kinds are {', '.join(words('table'))}.")
    return reader.read(place, encoding)


def decoded(path: Path, encoding: str | None = None) -> str:
    """The text of a file: what its byte-order mark says, or else the given encoding, or else UTF-8."""
    content = read_bytes(path, DataError)
    usual = "utf-8" if encoding is None else checked_encoding(encoding)
    mark, name = next(((mark, name) for mark, name in MARKS if content.startswith(mark)), (b"", usual))
    content = content[len(mark) :]
    try:
        return content.decode(name)
    except UnicodeDecodeError as error:
        if mark:
            raise DataError(f"{shown(path)} begins as {name.upper()}, but cannot be read so: byte {error.start}.") \
                from None
        line, start = content.count(b"\n", 0, error.start) + 1, content.rfind(b"\n", 0, error.start) + 1
        advice = f"the file is not in the encoding {encoding}" if encoding is not None else \
            f"name the file's encoding with --encoding, such as {WESTERN} for a table that Excel saved in Western " \
            "Europe or America, or save it as UTF-8"
        raise DataError(f"{shown(path)}, line {line}: byte {error.start - start} is not {name.upper()}; {advice}.") \
            from None


def checked_encoding(name: str) -> str:
    """An encoding of text that is known here, under the name that was given."""
    try:
        " ".encode(name)
    except (LookupError, ValueError):         # ValueError: a name with a zero byte
        raise DataError(f"There is no encoding {name[:60]!r}; common ones are utf-8, {WESTERN}, latin-1 and utf-16.") \
            from None
    return name
