"""Guess the task from the training data: from the kind of file, its columns, and its labels."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from ...errors import DataError
from ...readers import shown
from ...text.tables import read_columns
from ..formats.named import DataSource, reader_of
from ..formats.tables import Columns, Labelled, LabelledTable, is_number, read_labelled
from ..formats.word_tables import has_words

_MOST_CLASSES = 30            # more different whole numbers are a scale
_CERTAIN_SEPARATORS = ("|", ";")          # a comma may be part of a label
_SHARE = 0.05                 # of the cells that have several labels


class Guess(NamedTuple):
    """A word of the slot `task`, and why."""

    task: str
    why: str


def guess_task(train: DataSource | Sequence[Labelled], columns: Columns | None = None) -> Guess:
    """The task of a training file, or of examples; a registered name, such as hub:NAME, is taken for classes."""
    if not isinstance(train, str | PathLike):
        return _of_table(LabelledTable(list(train), Columns(), ""))
    if reader_of(train) is not None:
        return Guess("classification", "")
    path = Path(train)
    if path.suffix.lower() in (".conll", ".conllu"):
        return Guess("ner", "words with labels")
    if columns is None or not columns.text:
        if path.suffix.lower() == ".json" and _asks(path):
            return Guess("qa", "questions with answers")
        if has_words(path, None if columns is None else columns.encoding):
            return Guess("ner", "lists of words with labels")
    return _of_table(read_labelled(path, columns, empty_labels=True))


def _asks(path: str | PathLike[str]) -> bool:
    """Are there questions in a JSON file, as SQuAD has them?"""
    try:
        table = read_columns(path)
    except DataError:
        raise DataError(f"{shown(path)} is neither a list of objects nor SQuAD's JSON.") from None
    return {"question", "context"} <= set(table.columns) or "paragraphs" in table.columns


def _of_table(found: LabelledTable) -> Guess:
    if found.form:
        return Guess(found.form, f"its columns are those of {found.form}")
    labels = [record.label for record in found.records]
    if found.several:
        return Guess("multilabel", "texts can have several labels")
    if labels and all(map(is_number, labels)):
        values = {float(label) for label in labels}
        if any(value != int(value) for value in values) or len(values) > _MOST_CLASSES:
            return Guess("regression", "the labels are numbers on a scale")
    if any(_several(labels, sign) for sign in _CERTAIN_SEPARATORS):
        return Guess("multilabel", "cells have several labels")
    return Guess("classification", "")


def _several(labels: list[str], sign: str) -> bool:
    """Do many cells have a separator, with parts that come again in other cells?"""
    split = [label.split(sign) for label in labels]
    parts = {part.strip() for cell in split for part in cell}
    return sum(len(cell) > 1 for cell in split) >= max(2, _SHARE * len(labels)) and len(parts) < len(set(labels))

