"""log.jsonl: one JSON object a line, appended so that a crash costs at most the line it was writing."""

import json
import os
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import Any

from ...errors import CheckpointError
from ...files import write_files

LOG = "log.jsonl"


class Log:
    """The log of a run. A line is flushed when it is written, and synced with `sync`."""

    def __init__(self, run: Path):
        self.path = run / LOG

    def truncate(self, step: int) -> None:
        """Drop lines behind `step`, which a resumed run will write again, and half a line at the end."""
        kept = [line for line in read_log(self.path.parent) if line.get("step", 0) <= step]
        write_files(self.path.parent, {LOG: "".join(map(_encode, kept)).encode()})

    def write(self, record: dict[str, Any]) -> None:
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(_encode(record))
        except OSError as error:
            raise CheckpointError(f"Cannot write {self.path}: {error.strerror or error}.") from None

    def sync(self) -> None:
        if self.path.exists():
            with self.path.open("rb+") as file:
                os.fsync(file.fileno())


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
    """The records of a run's log; a line that is not whole is left out."""
    try:
        lines = (run / LOG).read_text("utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record
