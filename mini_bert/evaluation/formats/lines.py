"""Lines of a file with their numbers, and the sentence about one that is wrong."""

import json
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from ...errors import DataError


def wrong(path: str | PathLike[str], line: int, problem: str) -> DataError:
    """To be raised: what is wrong with a line."""
    return DataError(f"{path}, line {line}: {problem}.")


def numbered_lines(path: str | PathLike[str]) -> Iterator[tuple[int, str]]:
    """(number, line) of a UTF-8 file, counting from 1, without ends of lines."""
    try:
        with Path(path).open("rb") as file:
            for number, raw in enumerate(file, 1):
                try:
                    text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    raise wrong(path, number, f"byte {error.start} is not UTF-8") from None
                yield number, text.rstrip("\r\n")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None


def json_lines(path: str | PathLike[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """(number, object) of a file with a JSON object a line; blank lines are passed over."""
    for number, line in numbered_lines(path):
        if line.strip():
            try:
                content = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise wrong(path, number, f"it is not JSON: {error}") from None
            if not isinstance(content, dict):
                raise wrong(path, number, f"it holds a JSON {type(content).__name__}, not an object")
            yield number, content


def text_field(content: dict[str, Any], key: str, path: str | PathLike[str], line: int) -> str:
    """A field that must be there and be text."""
    value = content.get(key)
    if not isinstance(value, str):
        raise wrong(path, line, f"the field {key!r} is missing or is not text")
    return value
