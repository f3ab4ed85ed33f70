"""Labelled texts in GLUE's TSV format: tab-separated with column names in the first line (CoLA: without names).

Blank lines are skipped. Labels are classes; numbers on a scale, such as those of STS-B, are refused.
"""

from collections.abc import Sequence
from itertools import chain
from math import isfinite
from os import PathLike
from typing import NamedTuple

from ...errors import DataError
from .lines import line_error, numbered_lines

# the columns of the text, or of a pair of texts, in the usual data sets
TEXTS = (("sentence1", "sentence2"), ("premise", "hypothesis"), ("question1", "question2"), ("question", "sentence"),
         ("#1 string", "#2 string"), ("sentence",), ("text",))
_COLA = ("source", "label", "judgement", "sentence")
LABELS = ("label", "gold_label", "is_duplicate", "quality", "score")


class Labelled(NamedTuple):
    """A text, or a pair of texts, with its label."""

    text: str
    pair: str | None
    label: str


def read_table(path: str | PathLike[str], *, labelled: bool = True) -> list[Labelled]:
    """All examples of a file; with `labelled=False` the column of labels may be missing, and labels are then empty."""
    lines = numbered_lines(path)
    number, first = next(lines, (0, ""))
    columns = [column.strip().lower() for column in first.split("\t")]
    if _is_cola(columns):                 # the only data set of GLUE without column names
        columns, lines = list(_COLA), chain([(number, first)], lines)
    texts = next((names for names in TEXTS if all(name in columns for name in names)), None)
    if texts is None:
        raise line_error(path, 1, f"it must name the columns, tab-separated, such as 'sentence' and 'label'; it is "
                                  f"{first[:80]!r}")
    label = next((columns.index(name) for name in LABELS if name in columns), None)
    if labelled and label is None:
        raise line_error(path, 1, f"there is no column of labels; name it one of {', '.join(LABELS)}")
    places = [columns.index(name) for name in texts]
    records = []
    for number, line in lines:
        if not line.strip(" "):           # a line of tabs is an example with empty fields
            continue
        fields = line.split("\t")
        if len(fields) != len(columns):
            raise line_error(path, number, f"it has {len(fields)} columns, but the first line has {len(columns)}")
        given = "" if label is None else fields[label].strip()
        if labelled and not given:
            raise line_error(path, number, "its label is empty")
        first_text, *others = (fields[place].strip() for place in places)
        if not first_text:
            raise line_error(path, number, "its text is empty")
        if others and not others[0]:
            raise line_error(path, number, "its second text is empty")
        records.append(Labelled(first_text, others[0] if others else None, given))
    if not records:
        raise DataError(f"{path} has no examples.")
    if labelled:
        require_classes(records, str(path))
    return records


def _is_cola(fields: Sequence[str]) -> bool:
    return len(fields) == len(_COLA) and fields[1] in ("0", "1") and fields[2] in ("", "*")


def require_classes(records: Sequence[Labelled], source: str) -> None:
    """Refuse labels that are fractional numbers: each of them would be a class of its own."""
    try:
        numbers = {record.label: float(record.label) for record in records}
    except ValueError:
        return
    between = next((label for label, value in numbers.items() if not isfinite(value) or value != int(value)), None)
    if between is not None:
        raise DataError(f"{source} has the label {between}, a number on a scale; fine-tuning needs classes, such as 0 "
                        "and 1.")
