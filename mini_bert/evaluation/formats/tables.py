"""Texts with labels from a table: which columns have the text and the label, and what a label is.

Columns are chosen by the caller, by their names, or, if no name is known, by their content: the text is the column with
by far the longest texts, the label the only one with few distinct values. What cannot be told apart is not guessed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import isfinite
from os import PathLike
from typing import NamedTuple

from ...errors import DataError
from ...readers import shown
from ...text.tables import Table, read_columns
from ...text.tables.columns import LOOKED_AT, TEXTS, listed, longest_column

LABELS = ("label", "labels", "gold_label", "is_duplicate", "quality", "score", "class", "category", "sentiment",
          "target", "rating")
COLA = ("source", "label", "judgement", "sentence")
SEPARATORS = ("|", ";", ",")              # between several labels in one cell
_YES, _NO = ("1", "1.0", "true", "yes"), ("0", "0.0", "false", "no", "")
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|\d{1,2}:\d{2}")
_FEW_VALUES, _LEAST_TIMES = 50, 2         # a label has at most this many values, each this often on average


class Labelled(NamedTuple):
    """A text, or a pair of texts, with its label as it is written; `labels` are all of a text that can have several."""

    text: str
    pair: str | None
    label: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Columns:
    """The columns that a caller names: one of text, or two of a pair; one of labels, or several that are yes or no. And
    the encoding of the file, if it is not UTF-8."""

    text: tuple[str, ...] = ()
    label: tuple[str, ...] = ()
    encoding: str | None = None

    def __post_init__(self) -> None:
        if len(self.text) > 2:
            raise DataError(f"A text has one column, or two of a pair, not {len(self.text)}.")


@dataclass(frozen=True)
class LabelledTable:
    """The examples of a file, the columns that they were read from, and a sentence about it."""

    records: list[Labelled]
    columns: Columns
    says: str
    table: Table | None = None            # None for records that are from no file
    form: str = ""                        # of a data set that is known by its columns: cola or mrpc
    several: bool = field(default=False)  # do cells have lists of labels, or several columns one each?


def read_table(path: str | PathLike[str], *, labelled: bool = True, columns: Columns | None = None) -> list[Labelled]:
    """All examples of a file; with `labelled=False` there may be no labels, and they are then empty."""
    return read_labelled(path, columns, labelled=labelled).records


def read_labelled(path: str | PathLike[str], columns: Columns | None = None, *, labelled: bool = True,
                  empty_labels: bool = False, known: Columns | None = None) -> LabelledTable:
    """The same with what was chosen; `empty_labels` allows texts without any of several labels. `known` are the columns
    of another table, which are taken here if they are there and the caller names none."""
    wanted = columns or Columns()
    table = read_columns(path, wanted.encoding)
    if not len(table):
        raise DataError(f"{shown(path)} has no examples.")
    if known is not None:
        usual = [given if set(given) <= set(table.columns) else () for given in (known.text, known.label)]
        wanted = replace(wanted, text=wanted.text or usual[0], label=wanted.label or usual[1])
    chosen = _choose(table, wanted, labelled)
    records = []
    for row in range(len(table)):
        first, *others = (table.text(row, column) for column in chosen.texts)
        label, labels = _label(table, row, chosen.labels)
        if labelled and not label and not (empty_labels or len(chosen.labels) > 1):
            raise table.error(row, "its label is empty")
        if not first:
            raise table.error(row, "its text is empty")
        if others and not others[0]:
            raise table.error(row, "its second text is empty")
        records.append(Labelled(first, others[0] if others else None, label, labels))
    lists = len(chosen.labels) > 1 or any(table.texts(row, column) is not None for column in chosen.labels
                                          for row in range(min(len(table), LOOKED_AT)))
    return LabelledTable(records, Columns(tuple(table.columns[i] for i in chosen.texts),
                                          tuple(table.columns[i] for i in chosen.labels)),
                         _says(table, chosen), table, chosen.form, lists)


def _label(table: Table, row: int, columns: Sequence[int]) -> tuple[str, tuple[str, ...]]:
    """A label as it is written, and all of them where the table itself has several."""
    if not columns:
        return "", ()
    if len(columns) == 1:
        items = table.texts(row, columns[0])
        return (table.text(row, columns[0]), ()) if items is None else (", ".join(items), items)
    chosen = []
    for column in columns:
        value = table.text(row, column).lower()
        if value not in (*_YES, *_NO):
            raise table.error(row, f"{table.columns[column]} is {value[:60]!r}; each of several columns of labels must "
                                   "be 1 or 0")
        if value in _YES:
            chosen.append(table.columns[column])
    return ", ".join(chosen), tuple(chosen)


# -------------------------------------------------------------------- which columns

class _Chosen(NamedTuple):
    texts: list[int]
    labels: list[int]
    guessed: bool = False                 # by the content
    form: str = ""


def _choose(table: Table, wanted: Columns, labelled: bool) -> _Chosen:
    if not wanted.text and not wanted.label and _is_cola(table):
        return _Chosen([COLA.index("sentence")], [COLA.index("label")], form="cola")
    texts, guessed, form = [table.column(name) for name in wanted.text], False, ""
    labels = [table.column(name) for name in wanted.label]
    lowered = [name.strip().lower() for name in table.columns]
    if not texts:
        known = next((names for names in TEXTS if all(name in lowered for name in names)), None)
        texts = [lowered.index(name) for name in known] if known else [longest_column(table, labels)]
        guessed, form = known is None, "mrpc" if known == ("#1 string", "#2 string") else ""
    if labelled and not labels:
        others = [i for i, name in enumerate(lowered) if i not in texts]
        found = next((lowered.index(name) for name in LABELS if name in [lowered[i] for i in others]), None)
        labels = [_few_values(table, others) if found is None else found]
        guessed = guessed or found is None
    if both := set(texts) & set(labels):
        raise DataError(f"{shown(table.path)}: {table.columns[both.pop()]} cannot be both the text and the label.")
    return _Chosen(texts, labels, guessed, form)


def _is_cola(table: Table) -> bool:
    """CoLA is the only data set of GLUE without names of columns."""
    return not table.named and len(table.columns) == len(COLA) and all(
        row[1] in ("0", "1") and row[2] in ("", "*") for row in table.rows[:LOOKED_AT])


def _few_values(table: Table, columns: Sequence[int]) -> int:
    """The only column with few different values, which come again and again; or the only one of numbers."""
    few, numbers = [], []
    for column in columns:
        cells = [str(row[column]).strip() for row in table.rows]
        values = set(cells)
        if all(map(_DATE.match, values)):         # which can come again and again, too
            continue
        if 1 < len(values) <= min(_FEW_VALUES, len(cells) / _LEAST_TIMES):
            few.append(column)
        elif len(values) > 1 and all(is_number(value) for value in values) and not _counts(cells):
            numbers.append(column)
    if len(few or numbers) != 1:
        raise DataError(f"{shown(table.path)}: it is not clear which column has the labels; its columns are "
                        f"{listed(table)}. Choose one with --label-column.")
    return (few or numbers)[0]


def _counts(cells: Sequence[str]) -> bool:
    """Are these the numbers of the rows, one after the other?"""
    values = [float(cell) for cell in cells]
    return all(b - a == 1 for a, b in pairwise(values))


def _says(table: Table, chosen: _Chosen) -> str:
    names = [repr(table.columns[i]) for i in chosen.texts]
    text = f"the text is column {names[0]}" if len(names) == 1 else f"the texts are columns {names[0]} and {names[1]}"
    label = "" if not chosen.labels else f", the label column {table.columns[chosen.labels[0]]!r}" \
        if len(chosen.labels) == 1 else f", the labels {len(chosen.labels)} columns"
    how = ", by their content: --text-column and --label-column choose others" if chosen.guessed else ""
    return f"{shown(table.path)}: {table.kind}, {len(table):,} rows; {text}{label}{how}."


def is_number(text: str) -> bool:
    """Is this a finite number?"""
    try:
        return isfinite(float(text))
    except ValueError:
        return False
