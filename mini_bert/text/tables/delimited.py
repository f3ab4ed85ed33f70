"""CSV with any delimiter, and TSV, as spreadsheets, pandas and GLUE write them.

Delimiter    , ; tab or | : the one that gives all rows as many cells as the first; of several, that with most cells
Quotes       a cell in quotation marks may have delimiters, line ends and doubled marks in it. Where the lines have
             equal numbers of cells between tabs, marks count only if all are in pairs: GLUE's files have single ones
Header       the first row names the columns, unless it has a number, or a value that comes again in its column
"""

import csv
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import ClassVar

from ...core.registry import register
from ...errors import DataError
from ...readers import shown
from .table import Table, TableReader, decoded

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_TRIED = 50                   # rows from which the delimiter is found
_LONGEST_NAME = 60            # characters in the name of a column
_LARGEST_CELL = 1 << 27
_QUOTED = re.compile(r'"(?:[^"]|"")*"\s*')
# names that make a first row a header, whatever else is in it
NAMES = {"text", "sentence", "sentence1", "sentence2", "premise", "hypothesis", "question", "question1", "question2",
         "label", "labels", "gold_label", "score", "quality", "id", "idx", "index", "review", "comment", "category"}

Rows = list[list[str]]


class Delimited(TableReader):
    """`usual` is the delimiter that wins if several fit."""

    usual: ClassVar[str]

    def claims(self, head: bytes) -> bool:
        return False

    def read(self, path: Path, encoding: str | None = None) -> Table:
        text = decoded(path, encoding)
        delimiter = _delimiter(text, self.usual)
        rows, numbers = _rows(text, delimiter, path)
        if not rows:
            raise DataError(f"{shown(path)} has no rows.")
        width = len(rows[0])
        for row, number in zip(rows, numbers, strict=True):
            if len(row) != width:
                raise DataError(f"{shown(path)}, line {number}: it has {len(row)} columns, but the first line has "
                                f"{width}.")
        named = has_header(rows)
        columns = [name.strip() or f"column {i}" for i, name in enumerate(rows[0], 1)] if named \
            else [str(i) for i in range(1, width + 1)]
        what = DELIMITERS[delimiter] if width > 1 else "one column"
        return Table(str(path), f"text with {what}", columns, [*rows[named:]], numbers[named:], named=named)


@register("table", "tsv")
class TSV(Delimited):
    endings, usual = (".tsv", ".tab"), "\t"


@register("table", "csv")
class CSV(Delimited):
    endings, usual = (".csv",), ","

    def claims(self, head: bytes) -> bool:
        """Any text that does not begin as JSON does."""
        text = b"\0" not in head or head.startswith((b"\xff\xfe", b"\xfe\xff"))
        return text and not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[", b"PAR1"))


def _delimiter(text: str, usual: str) -> str:
    """The delimiter of a text; the usual one if it has a single column."""
    found: dict[str, int] = {}
    for delimiter in sorted(DELIMITERS, key=lambda delimiter: delimiter != usual):
        counts = [len(row) for row in _beginning(text, delimiter)]
        if counts and counts[0] > 1 and len(set(counts)) == 1:
            found[delimiter] = counts[0]
    if usual in found:
        return usual
    if found:
        return max(found, key=lambda delimiter: found[delimiter])
    first = text.lstrip("\n").partition("\n")[0]          # no delimiter fits: the message is about the most frequent
    most = max(DELIMITERS, key=lambda delimiter: (first.count(delimiter), delimiter == usual))
    return most if most in first else usual


def _beginning(text: str, delimiter: str) -> Rows:
    """The first rows, by the marks where there are any."""
    rows: Rows = []
    try:
        for row in _quoted(text, delimiter):
            rows.append(row[0])
            if len(rows) == _TRIED:
                break
    except csv.Error:
        rows = [line.split(delimiter) for line in text.split("\n", _TRIED)[:_TRIED] if line.strip(" \r")]
    return rows


def _rows(text: str, delimiter: str, path: Path) -> tuple[Rows, list[int]]:
    """All rows that are not blank, with the numbers of their lines."""
    lines = [(number, line.rstrip("\r")) for number, line in enumerate(text.split("\n"), 1) if line.strip(" \r")]
    numbers = [number for number, _ in lines]
    several = bool(lines) and delimiter in lines[0][1]
    plain = [line.split(delimiter) if several else [line] for _, line in lines]
    even = len({len(row) for row in plain}) < 2
    if even and all(_QUOTED.fullmatch(cell) for row in plain for cell in row if cell.startswith('"')):
        return [[_without_marks(cell) for cell in row] for row in plain], numbers
    if even and several and delimiter == "\t":           # where cells seldom have line ends in them
        return plain, numbers
    try:
        quoted = [(row, number) for row, number in _quoted(text, delimiter) if len(row) > 1 or row[0].strip()]
    except csv.Error as error:
        if even or delimiter == "\t":
            return plain, numbers
        raise DataError(f"{shown(path)} has quotation marks that are not in pairs: {error}.") from None
    if not several and any(len(row) > 1 for row, _ in quoted):
        return plain, numbers
    return [row for row, _ in quoted], [number for _, number in quoted]


def _without_marks(cell: str) -> str:
    return cell.strip()[1:-1].replace('""', '"') if cell.startswith('"') else cell


def _quoted(text: str, delimiter: str) -> Iterator[tuple[list[str], int]]:
    """(row, number of its first line), read with quotation marks."""
    before = csv.field_size_limit(_LARGEST_CELL)
    try:
        reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True)
        first = 1
        for row in reader:
            if row:
                yield row, first
            first = reader.line_num + 1
    except csv.Error as error:
        raise csv.Error(f"line {first} or one that follows it: {error}") from None
    finally:
        csv.field_size_limit(before)


def has_header(rows: Rows) -> bool:
    """Does the first row name the columns?"""
    first = [cell.strip() for cell in rows[0]]
    if any(cell.lower() in NAMES for cell in first):
        return True
    if any(_number(cell) for cell in first) or not first[0] or max(map(len, first)) > _LONGEST_NAME:
        return False
    below = [{row[i].strip() for row in rows[1:]} for i in range(len(first))] if len(rows) > 2 else []
    return not any(cell in values for cell, values in zip(first, below, strict=False))


def _number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
