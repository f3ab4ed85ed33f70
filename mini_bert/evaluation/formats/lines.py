"""Numbered lines of a file, JSON lines, and the error for a malformed line."""

from collections.abc import Iterator
from os import PathLike
from typing import Any

from ...errors import DataError
from ...readers import parse_json, read_lines, shown


def line_error(path: str | PathLike[str], line: int, problem: str) -> DataError:
    """The error for a malformed line, to be raised."""
    return DataError(f"{shown(path)}, line {line}: {problem}.")


def numbered_lines(path: str | PathLike[str]) -> Iterator[tuple[int, str]]:
    """(number, line) of a UTF-8 file, from 1, without line endings."""
    for number, raw in enumerate(read_lines(path, DataError), 1):
        try:
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise line_error(path, number, f"byte {error.start} is not UTF-8") from None
        yield number, text.rstrip("\r\n")


def json_lines(path: str | PathLike[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """(number, object) of a file with one JSON object per line; blank lines are skipped."""
    for number, line in numbered_lines(path):
        if line.strip():
            content = parse_json(line, DataError, f"{shown(path)}, line {number}")
            if not isinstance(content, dict):
                raise line_error(path, number, f"it is a JSON {type(content).__name__}, not an object")
            yield number, content


def text_field(content: dict[str, Any], key: str, path: str | PathLike[str], line: int) -> str:
    """A required text field."""
    value = content.get(key)
    if not isinstance(value, str):
        raise line_error(path, line, f"the field {key!r} is missing or is not text")
    return value
