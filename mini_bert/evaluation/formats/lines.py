"""Numbered lines of a file, JSON lines, and the error for a malformed line."""

import json
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from ...errors import DataError


def line_error(path: str | PathLike[str], line: int, problem: str) -> DataError:
    """The error for a malformed line, to be raised."""
    return DataError(f"{path}, line {line}: {problem}.")


def numbered_lines(path: str | PathLike[str]) -> Iterator[tuple[int, str]]:
    """(number, line) of a UTF-8 file, from 1, without line endings."""
    try:
        with Path(path).open("rb") as file:
            for number, raw in enumerate(file, 1):
                try:
                    text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    raise line_error(path, number, f"byte {error.start} is not UTF-8") from None
                yield number, text.rstrip("\r\n")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None


def json_lines(path: str | PathLike[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """(number, object) of a file with one JSON object per line; blank lines are skipped."""
    for number, line in numbered_lines(path):
        if line.strip():
            try:
                content = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise line_error(path, number, f"it is not JSON: {error}") from None
            if not isinstance(content, dict):
                raise line_error(path, number, f"it is a JSON {type(content).__name__}, not an object")
            yield number, content


def text_field(content: dict[str, Any], key: str, path: str | PathLike[str], line: int) -> str:
    """A required text field."""
    value = content.get(key)
    if not isinstance(value, str):
        raise line_error(path, line, f"the field {key!r} is missing or is not text")
    return value
