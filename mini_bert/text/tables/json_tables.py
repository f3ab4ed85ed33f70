"""Tables in JSON: a list of objects, or one object a line. The columns are the keys; a key that is missing is empty."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ...core.registry import register
from ...errors import DataError
from ...readers import parse_json, shown
from .table import Table, TableReader, decoded


@register("table", "jsonl")
class JSONLines(TableReader):
    """One object a line; blank lines are skipped."""

    endings = (".jsonl", ".ndjson")

    def claims(self, head: bytes) -> bool:
        first = head.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0].rstrip()
        return first.startswith(b"{") and first.endswith(b"}")

    def read(self, path: Path, encoding: str | None = None) -> Table:
        found = ((number, parse_json(line, DataError, f"{shown(path)}, line {number}"))
                 for number, line in enumerate(decoded(path, encoding).split("\n"), 1) if line.strip())
        return _table(path, "JSON lines", found, "line")


@register("table", "json")
class JSONList(TableReader):
    """A list of objects; or an object with one such list, such as {"data": [...]}."""

    endings = (".json",)

    def claims(self, head: bytes) -> bool:
        return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"[", b"{"))

    def read(self, path: Path, encoding: str | None = None) -> Table:
        content = parse_json(decoded(path, encoding), DataError, shown(path))
        parts = content.values() if isinstance(content, dict) else [content]
        lists = [part for part in parts if isinstance(part, list)]
        if len(lists) != 1:
            raise DataError(f"{shown(path)} is not a table: it needs a list of objects, one for each row.")
        return _table(path, "JSON", enumerate(lists[0], 1), "item")


def _table(path: Path, kind: str, found: Iterable[tuple[int, Any]], unit: str) -> Table:
    numbers, objects = [], []
    for number, item in found:
        if not isinstance(item, dict):
            raise DataError(f"{shown(path)}, {unit} {number}: it is a JSON {type(item).__name__}, not an object.")
        numbers.append(number)
        objects.append(item)
    columns = list(dict.fromkeys(key for item in objects for key in item))
    if not columns:
        raise DataError(f"{shown(path)} has no rows.")
    return Table(str(path), kind, columns, [[item.get(key) for key in columns] for item in objects], numbers, unit)
