"""Parquet, the format of data frames and of the Hugging Face hub, read by pyarrow (the extra `parquet`).

pyarrow is the reference implementation and needs no other package; the lighter ones need pandas, or are no longer kept.
"""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ...core.registry import register
from ...errors import DataError
from ...readers import LARGEST_TEXT, require_file, shown
from .table import Table, TableReader


@register("table", "parquet")
class Parquet(TableReader):
    endings = (".parquet", ".pq")

    def claims(self, head: bytes) -> bool:
        return head.startswith(b"PAR1")

    def read(self, path: Path, encoding: str | None = None) -> Table:
        require_file(path, DataError)
        if path.stat().st_size > LARGEST_TEXT:
            raise DataError(f"{shown(path)} is larger than {LARGEST_TEXT:,} bytes, and is not read.")
        try:
            parquet = import_module("pyarrow.parquet")
        except ImportError:
            raise DataError(f"{shown(path)} is Parquet, which needs pyarrow: pip install \"mini-bert[parquet]\". Or "
                            "save the table as CSV or JSON lines.") from None
        try:
            found = parquet.ParquetFile(path).read()
            columns = [str(name) for name in found.column_names]
            cells = [found.column(i).to_pylist() for i in range(len(columns))]
            rows: list[Sequence[Any]] = list(zip(*cells, strict=True))
        except Exception as error:            # a damaged file can raise what it likes
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise DataError(f"{shown(path)} cannot be read as Parquet: {reason}.") from None
        if not columns or not rows:
            raise DataError(f"{shown(path)} has no rows.")
        return Table(str(path), "Parquet", columns, rows, list(range(1, len(rows) + 1)), "row")
