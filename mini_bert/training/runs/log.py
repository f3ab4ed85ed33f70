"""log.jsonl: one JSON object a line, appended so that a crash costs at most the line it was writing."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import Any, TextIO, cast

from ...errors import CheckpointError
from ...files import write_files
from ...readers import parse_json, read_lines

LOG = "log.jsonl"
_COUNTS = ("step", "total_steps", "tokens")


class Log:
    """The log of a run. A line is flushed when it is written, and synced with `sync`."""

    def __init__(self, run: Path):
        self.path = run / LOG

    def truncate(self, step: int) -> None:
        """Drop lines behind `step`, which a resumed run will write again, and half a line at the end."""
        kept = [line for line in read_log(self.path.parent) if line.get("step", 0) <= step]
        write_files(self.path.parent, {LOG: "".join(map(_encode, kept)).encode()})

    def write(self, record: dict[str, Any]) -> None:
        with self._opened("a") as file:
            file.write(_encode(record))

    def sync(self) -> None:
        if self.path.exists():
            with self._opened("r+") as file:
                os.fsync(file.fileno())

    @contextmanager
    def _opened(self, mode: str) -> Iterator[TextIO]:
        try:
            with self.path.open(mode, encoding="utf-8") as file:
                yield cast(TextIO, file)
        except OSError as error:
            raise CheckpointError(f"Cannot write {self.path}: {error.strerror or error}.") from None


def _encode(record: dict[str, Any]) -> str:
    return json.dumps(_rounded(record), separators=(", ", ": ")) + "\n"


def _rounded(value: Any) -> Any:
    """Seven digits, which is what a float32 has; JSON knows no NaN."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, float):
        return float(f"{value:.7g}") if isfinite(value) else None
    return value


def read_log(run: Path) -> Iterator[dict[str, Any]]:
    """The records of a run's log; a line that is not whole, or not such a record, is left out."""
    if (run / LOG).exists():
        found = map(parse_record, read_lines(run / LOG, CheckpointError))
        yield from (record for record in found if record is not None)


def parse_record(line: bytes) -> dict[str, Any] | None:
    """One line of the log: numbers by name, or numbers by the names of parameter groups; None if it is not that."""
    try:
        record = parse_json(line, CheckpointError, LOG)
    except CheckpointError:
        return None
    if not isinstance(record, dict) or not all(_is_measured(value) for value in record.values()) \
            or not all(_is_count(record[name]) for name in _COUNTS if name in record):
        return None
    return record


def _is_measured(value: Any) -> bool:
    """A number or a word, null where a number was not finite, or several of them by name."""
    if isinstance(value, dict):
        return all(inner is None or isinstance(inner, int | float | str) for inner in value.values())
    return value is None or isinstance(value, int | float | str)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63
