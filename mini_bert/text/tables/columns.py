"""Which column of a table has the text, if nobody says: one with a usual name, or that with much the longest texts."""

from collections.abc import Sequence

from ...errors import DataError
from ...readers import shown
from .table import Table

# the columns of the text, or of a pair of texts, in the usual data sets
TEXTS = (("sentence1", "sentence2"), ("premise", "hypothesis"), ("question1", "question2"), ("question", "sentence"),
         ("question", "context"), ("#1 string", "#2 string"), ("text1", "text2"), ("sentence",), ("text",),
         ("review",), ("comment",), ("content",), ("message",), ("body",), ("tweet",))
LOOKED_AT = 1000              # rows, to choose by content
_MUCH_LONGER = 2.0


def text_column(table: Table) -> int:
    """The column of single texts."""
    lowered = [name.strip().lower() for name in table.columns]
    named = next((lowered.index(name) for name, *others in TEXTS if not others and name in lowered), None)
    return longest_column(table) if named is None else named


def longest_column(table: Table, without: Sequence[int] = ()) -> int:
    """The column with much the longest texts, in words."""
    words = {}
    for column in range(len(table.columns)):
        cells = [row[column] for row in table.rows[:LOOKED_AT]]
        if column not in without and any(isinstance(cell, str) for cell in cells):
            words[column] = sum(len(cell.split()) for cell in cells if isinstance(cell, str)) / len(cells)
    ranked = sorted(words, key=lambda column: -words[column])
    if not ranked or (len(ranked) > 1 and words[ranked[0]] < _MUCH_LONGER * words[ranked[1]]):
        raise DataError(f"{shown(table.path)}: it is not clear which column is the text; its columns are "
                        f"{listed(table)}. Choose one with --text-column.")
    return ranked[0]


def listed(table: Table) -> str:
    """The names of its columns, for a message."""
    return ", ".join(table.columns[:20]) + ("" if table.named else
                                            f" (numbers, as the first {table.unit} has no names)")
