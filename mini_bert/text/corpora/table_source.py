"""The text of a table: the cells of one column, each a document."""

from collections.abc import Iterator
from pathlib import Path

from ..tables.columns import text_column
from ..tables.table import read_columns
from .file_source import FileSource, ReadingReport


class TableSource(FileSource):
    """A CSV, TSV, JSON, JSON lines or Parquet file; `column` is found by its name or its content if it is not given."""

    def __init__(self, name: str, column: str | None = None, *, encoding: str | None = None,
                 optional: bool = False):
        super().__init__(name, encoding=encoding, optional=optional)
        self.column = column

    def _read(self, report: ReadingReport, strict: bool) -> Iterator[str]:
        report.bytes_read += Path(self.name).stat().st_size
        for _, text in self.rows():
            yield from filter(None, (line.strip() for line in text.splitlines()))
            yield ""

    def rows(self) -> Iterator[tuple[int, str]]:
        """(number of the row from 1, text) of each row."""
        table = read_columns(self.name, self.encoding)
        place = text_column(table) if self.column is None else table.column(self.column)
        return ((row + 1, table.text(row, place)) for row in range(len(table)))
