"""Tables as people have them: CSV with any delimiter, TSV, JSON, JSON lines, Parquet. One kind a file, found by its
word in the slot `table`; what the columns mean is decided elsewhere."""

from . import delimited, json_tables, parquet
from .table import Table, checked_encoding, is_table, read_columns

__all__ = ["Table", "checked_encoding", "delimited", "is_table", "json_tables", "parquet", "read_columns"]
