"""Minimal pairs in BLiMP's JSON lines: two sentences that differ in one point of grammar.

    {"sentence_good": ..., "sentence_bad": ..., "UID": paradigm, "linguistics_term": phenomenon, "field": ...}

Other fields are ignored.
"""

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from ...errors import DataError
from .lines import json_lines, line_error, text_field

ENDING = ".jsonl"


class MinimalPair(NamedTuple):
    """A grammatical sentence, its ungrammatical counterpart, and what they test."""

    good: str
    bad: str
    paradigm: str
    phenomenon: str
    field: str


def data_files(names: Iterable[str | PathLike[str]], ending: str = ENDING) -> list[Path]:
    """The named files, and the files with this ending in the named folders, without duplicates."""
    found: dict[Path, None] = {}
    for name in names:
        path = Path(name)
        if path.is_dir():
            inside = sorted(file for file in path.iterdir() if file.suffix == ending and file.is_file())
            if not inside:
                raise DataError(f"The folder {path} has no {ending} files.")
            found |= dict.fromkeys(inside)
        elif path.is_file():
            found[path] = None
        else:
            raise DataError(f"There is no file or folder {path}.")
    if not found:
        raise DataError(f"No data was given; name {ending} files, or folders of them.")
    return list(found)


def read_minimal_pairs(path: str | PathLike[str]) -> list[MinimalPair]:
    """The pairs of a file."""
    pairs = []
    for line, content in json_lines(path):
        good, bad, paradigm, phenomenon, field = (
            text_field(content, key, path, line)
            for key in ("sentence_good", "sentence_bad", "UID", "linguistics_term", "field"))
        for key, value in (("sentence_good", good), ("sentence_bad", bad), ("UID", paradigm)):
            if not value.strip():
                raise line_error(path, line, f"the field {key!r} is empty")
        pairs.append(MinimalPair(good, bad, paradigm, phenomenon, field))
    if not pairs:
        raise DataError(f"{path} has no minimal pairs.")
    return pairs
