"""Sentences from JSON lines, JSON or Parquet whose rows have lists: the words, and a label for each of them.

    {"tokens": ["Anna", "lives", "in", "Paris"], "ner_tags": ["B-PER", "O", "O", "B-LOC"]}
"""

from collections.abc import Sequence
from os import PathLike

from ...errors import DataError
from ...readers import shown
from ...text.tables import Table, is_table, read_columns
from ..tasks.bio import as_bio, is_bio
from .conllu import Sentence

WORDS = ("tokens", "words")
ENTITIES = ("ner_tags", "ner", "entities", "tags", "labels")
PARTS_OF_SPEECH = ("upos", "pos_tags", "pos")


def read_word_table(path: str | PathLike[str]) -> list[Sentence]:
    """All sentences of a table that have words."""
    table = read_columns(path)
    lowered = [name.lower() for name in table.columns]
    words, entities, pos = (next((lowered.index(name) for name in names if name in lowered), None)
                            for names in (WORDS, ENTITIES, PARTS_OF_SPEECH))
    if words is None or (entities is None and pos is None):
        raise DataError(f"{shown(path)} needs a column of words, such as tokens, and one of their labels, such as "
                        f"ner_tags or upos; its columns are {', '.join(table.columns[:20])}.")
    found = []
    for row in range(len(table)):
        own = _items(table, row, words)
        tags = None if entities is None else _items(table, row, entities, own)
        if tags is not None:
            if wrong := next((tag for tag in tags if not is_bio(tag)), None):
                raise table.error(row, f"the label {wrong[:60]!r} is not O, B-TYPE or I-TYPE")
            tags = as_bio(tags)
        upos = None if pos is None else _items(table, row, pos, own)
        if own:
            found.append(Sentence(own, upos=upos, entities=tags))
    if not found:
        raise DataError(f"{shown(path)} has no sentences.")
    return found


def has_words(path: str | PathLike[str], encoding: str | None = None) -> bool:
    """Does a file's name end as that of a table, and does it have a column of words in lists?"""
    if not is_table(path):
        return False
    table = read_columns(path, encoding)
    lowered = [name.lower() for name in table.columns]
    return any(name in lowered and table.texts(0, lowered.index(name)) is not None for name in WORDS) if len(table) \
        else False


def _items(table: Table, row: int, column: int, words: Sequence[str] | None = None) -> tuple[str, ...]:
    items = table.texts(row, column)
    if items is None:
        raise table.error(row, f"{table.columns[column]} is not a list; words and their labels must be lists")
    if not all(items):
        raise table.error(row, f"{table.columns[column]} has an empty item")
    if words is not None and len(items) != len(words):
        raise table.error(row, f"there are {len(words)} words and {len(items)} of {table.columns[column]}")
    return items
