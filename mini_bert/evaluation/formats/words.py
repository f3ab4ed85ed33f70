"""Word similarity, one "word word score" per line; or analogies, one "a b c d" per line, as in Google's set.

A section of analogies begins with a line ": NAME"; a file whose first line is such a line is read as analogies.
"""

from math import isfinite
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from ...errors import DataError
from .lines import line_error, numbered_lines


class Similarity(NamedTuple):
    """Pairs of words with human similarity scores."""

    name: str
    pairs: list[tuple[str, str]]
    scores: list[float]


class Analogies(NamedTuple):
    """Questions a b c d (a is to b as c is to d), and the section of each."""

    name: str
    questions: list[tuple[str, str, str, str]]
    sections: list[str]


def read_words(path: str | PathLike[str]) -> Similarity | Analogies:
    """Read analogies if the first line begins with a colon, otherwise pairs with scores."""
    lines = [(number, line.strip()) for number, line in numbered_lines(path) if line.strip()]
    if not lines:
        raise DataError(f"{path} has no words.")
    name = Path(path).stem
    if lines[0][1].startswith(":"):
        return _read_analogies(path, name, lines)
    pairs, scores = [], []
    for number, line in lines:
        columns = line.split("\t") if "\t" in line else line.split()
        if len(columns) != 3:
            raise line_error(path, number, f"it has {len(columns)} columns, not 3: word, word, score")
        try:
            score = float(columns[2])
        except ValueError:
            score = float("nan")
        if not isfinite(score):
            raise line_error(path, number, f"the score is {columns[2]!r}, not a number")
        pairs.append((columns[0].strip(), columns[1].strip()))
        scores.append(score)
    return Similarity(name, pairs, scores)


def _read_analogies(path: str | PathLike[str], name: str, lines: list[tuple[int, str]]) -> Analogies:
    questions, sections, section = [], [], ""
    for number, line in lines:
        if line.startswith(":"):
            section = line[1:].strip()
            continue
        words = line.split()
        if len(words) != 4:
            raise line_error(path, number, f"it has {len(words)} words, not 4: a is to b as c is to d")
        questions.append((words[0], words[1], words[2], words[3]))
        sections.append(section)
    if not questions:
        raise DataError(f"{path} has no analogies.")
    return Analogies(name, questions, sections)
