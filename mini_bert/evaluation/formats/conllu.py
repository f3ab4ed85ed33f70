"""CoNLL-U, the format of Universal Dependencies: ten columns per word, a blank line between sentences.

Words are syntactic words: the words of a multi-word token (a line 3-4) count, not the token itself, and empty nodes (a
line 5.1) are skipped. Named entities come from Entity= in MISC, as in UD GUM. Of nested entities the outermost is
kept, of crossing entities the first, and each part of a discontinuous entity is an entity of its own.
"""

import re
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from ...errors import DataError
from ...readers import read_lines
from .lines import line_error, numbered_lines

_COLUMNS = 10
_ENTITY_HEADER = re.compile(r"#\s*global\.Entity\s*=\s*(.*)")
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
_RANGE = re.compile(r"([1-9][0-9]{0,8})-([1-9][0-9]{0,8})")
_EMPTY_NODE = re.compile(r"([0-9]{1,9})\.[1-9][0-9]{0,8}")
_BRACKETS = re.compile(r"\(([^()]+)|([^()]*)\)")          # an opening with its fields, or a closing with its group
_ALL_BRACKETS = re.compile(r"(?:\([^()]+|[^()]*\))+")


class Sentence(NamedTuple):
    """The words of a sentence with their annotation; None for a column that the file leaves empty."""

    words: tuple[str, ...]
    upos: tuple[str, ...] | None = None
    heads: tuple[int, ...] | None = None          # index of the head, from 1; 0 for the root
    relations: tuple[str, ...] | None = None
    entities: tuple[str, ...] | None = None       # B-TYPE, I-TYPE or O


class _Word(NamedTuple):
    line: int
    columns: list[str]


def read_conllu(path: str | PathLike[str]) -> list[Sentence]:
    """All sentences of a file."""
    sentences = list(_sentences(path))
    if not sentences:
        raise DataError(f"{path} has no sentences.")
    return sentences


def has_entities(path: str | PathLike[str], *, without_header: bool = False) -> bool:
    """Whether a CoNLL-U file has Entity= and the header that names its fields; or, `without_header`, no header."""
    if Path(path).suffix != ".conllu" or not Path(path).is_file():
        return False
    marked = header = False
    for line in read_lines(path, DataError):
        if line.startswith(b"#"):
            header = header or line[1:].strip().startswith(b"global.Entity")
        else:
            marked = marked or b"Entity=" in line
        if marked and header:
            break
    return marked and header != without_header


def missing_header(path: str | PathLike[str]) -> str:
    """The error message for a file that has entities but no header for them."""
    return (f"{path} has Entity= but no line '# global.Entity = GRP-etype-...' that names its fields, so its entities "
            "cannot be read.")


def _sentences(path: str | PathLike[str]) -> Iterator[Sentence]:
    words: list[_Word] = []
    fields: list[str] | None = None               # of an entity, in the order of the header
    last_of_token = 0
    number = 0
    for number, line in numbered_lines(path):
        if not line.strip():
            if words:
                yield _sentence(path, words, fields, last_of_token)
            words, last_of_token = [], 0
        elif line.startswith("#"):
            if words:
                raise line_error(path, number, "there is a comment inside a sentence")
            if header := _ENTITY_HEADER.fullmatch(line.strip()):
                fields = _entity_fields(path, number, header[1])
        else:
            columns = line.split("\t")
            if len(columns) != _COLUMNS:
                raise line_error(path, number, f"there are {len(columns)} columns, but CoNLL-U has {_COLUMNS}, "
                                               "separated by tabs")
            last_of_token = _add(path, number, columns, words, last_of_token)
    if words:
        yield _sentence(path, words, fields, last_of_token)


def _add(path: str | PathLike[str], number: int, columns: list[str], words: list[_Word], last_of_token: int) -> int:
    """Append a word to `words`; return the last word of the current multi-word token, 0 if there is none."""
    name = columns[0]
    if _NUMBER.fullmatch(name):
        if int(name) != len(words) + 1:
            raise line_error(path, number, f"the word is numbered {name}, but {len(words) + 1} is next")
        if not columns[1].strip():
            raise line_error(path, number, "the word is empty")
        words.append(_Word(number, columns))
    elif token := _RANGE.fullmatch(name):
        first, last = int(token[1]), int(token[2])
        if first != len(words) + 1 or last <= first or first <= last_of_token:
            raise line_error(path, number, f"the multi-word token {name} does not begin with the next word, "
                                           f"{len(words) + 1}, or ends before it, or is inside another")
        return last
    elif node := _EMPTY_NODE.fullmatch(name):
        if int(node[1]) != len(words):
            raise line_error(path, number, f"the empty node {name} follows word {len(words)}")
    else:
        raise line_error(path, number, f"{name!r} is not the number of a word such as 3, 3-4 or 3.1")
    return last_of_token


def _sentence(path: str | PathLike[str], words: list[_Word], fields: list[str] | None, last_of_token: int) -> Sentence:
    if last_of_token > len(words):
        raise line_error(path, words[-1].line, f"the sentence ends inside a multi-word token up to {last_of_token}")
    heads = _column(path, words, 6, "head")
    return Sentence(tuple(word.columns[1] for word in words), _column(path, words, 3, "UPOS"),
                    None if heads is None else _tree(path, words, heads), _column(path, words, 7, "relation"),
                    None if fields is None else _entities(path, words, fields))


def _column(path: str | PathLike[str], words: list[_Word], column: int, what: str) -> tuple[str, ...] | None:
    """The column of all words, or None if it is _ for each of them."""
    values = tuple(word.columns[column] for word in words)
    if "_" not in values and "" not in values:
        return values
    if all(value == "_" for value in values):
        return None
    missing = next(i for i, value in enumerate(values) if value in ("_", ""))
    raise line_error(path, words[missing].line, f"the {what} is missing, but other words of the sentence have one")


def _tree(path: str | PathLike[str], words: list[_Word], values: tuple[str, ...]) -> tuple[int, ...]:
    heads = []
    for i, value in enumerate(values):
        if not (value == "0" or _NUMBER.fullmatch(value)) or int(value) > len(words) or int(value) == i + 1:
            raise line_error(path, words[i].line, f"the head {value!r} is neither the number of another word, 1 to "
                                                  f"{len(words)}, nor 0 for the root")
        heads.append(int(value))
    roots = [i for i, head in enumerate(heads) if head == 0]
    if len(roots) > 1:
        raise line_error(path, words[roots[1]].line, "the sentence has a second root")
    reaches = [False] * len(heads)                # words whose chain of heads is known to end at the root
    for i in range(len(heads)):
        way: list[int] = []
        here = i
        while heads[here] and not reaches[here]:
            if len(way) > len(heads):
                raise line_error(path, words[i].line, "the heads form a cycle that does not reach the root")
            way.append(here)
            here = heads[here] - 1
        for passed in (*way, here):
            reaches[passed] = True
    return tuple(heads)


def _entity_fields(path: str | PathLike[str], number: int, header: str) -> list[str]:
    """The names of the fields; eid and entity, as some corpora call them, become GRP and etype."""
    names = [{"eid": "GRP", "entity": "etype"}.get(name, name) for name in header.strip().split("-")]
    if not {"GRP", "etype"} <= set(names):
        raise line_error(path, number, f"the fields of entities, {header!r}, lack GRP or etype")
    return names


def _entities(path: str | PathLike[str], words: list[_Word], fields: list[str]) -> tuple[str, ...]:
    group_field, type_field = fields.index("GRP"), fields.index("etype")
    open_now: list[tuple[str, str, int]] = []     # group, type, first word
    spans: list[tuple[int, int, str]] = []        # first word, minus the last word, type: the longest sorts first
    for i, word in enumerate(words):
        value = next((item[7:] for item in word.columns[9].split("|") if item.startswith("Entity=")), None)
        if value is None:
            continue
        if not _ALL_BRACKETS.fullmatch(value):
            raise line_error(path, word.line, f"Entity={value} is not a sequence of opening and closing brackets")
        for opening, closing in _BRACKETS.findall(value):
            if opening:
                parts = opening.split("-", len(fields) - 1)
                if len(parts) <= max(group_field, type_field) or not parts[type_field]:
                    raise line_error(path, word.line, f"the entity {opening!r} has no {'-'.join(fields)}")
                open_now.append((parts[group_field], parts[type_field], i))
                continue
            place = next((k for k in reversed(range(len(open_now))) if closing in ("", open_now[k][0])), None)
            if place is None:
                raise line_error(path, word.line, f"the entity {closing!r} ends here but begins in no word before")
            _, kind, first = open_now.pop(place)
            spans.append((first, -i, kind))
    if open_now:
        group, _, first = open_now[0]
        raise line_error(path, words[first].line, f"the entity {group!r} begins here but does not end in this sentence")
    labels = ["O"] * len(words)
    covered = 0
    for first, minus_last, kind in sorted(spans, key=lambda span: span[:2]):
        if first >= covered:
            covered = 1 - minus_last
            labels[first:covered] = [f"B-{kind}", *[f"I-{kind}"] * (covered - first - 1)]
    return tuple(labels)
