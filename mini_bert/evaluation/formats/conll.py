"""CoNLL columns for named entities: a word a line, the word first and its label last, blank lines between sentences.

Columns are separated by tabs, or by white space where a line has no tab. Lines that begin with -DOCSTART- separate
documents. Labels are O, B-TYPE and I-TYPE; an I- that continues nothing begins an entity, as in the first of the two
conventions, and is given as B-.
"""

from collections.abc import Sequence
from os import PathLike

from ...errors import DataError
from .conllu import Sentence
from .lines import numbered_lines, wrong

_DOCUMENT = "-DOCSTART-"


def read_conll(path: str | PathLike[str]) -> list[Sentence]:
    """All sentences of a file, with words and entities."""
    sentences: list[Sentence] = []
    words: list[str] = []
    labels: list[str] = []
    columns = 0

    def end() -> None:
        nonlocal words, labels
        if words:
            sentences.append(Sentence(tuple(words), entities=as_bio(labels)))
        words, labels = [], []

    for number, line in numbered_lines(path):
        if not line.strip() or line.startswith(_DOCUMENT):
            end()
            continue
        parts = line.split("\t") if "\t" in line else line.split()
        if len(parts) < 2:
            raise wrong(path, number, f"{line.strip()!r} has one column; a word and its label are at least two")
        if columns and len(parts) != columns:
            raise wrong(path, number, f"there are {len(parts)} columns, and {columns} in the lines before")
        columns = len(parts)
        word, label = parts[0].strip(), parts[-1].strip()
        if not word:
            raise wrong(path, number, "the word is empty")
        if label != "O" and not (label[:2] in ("B-", "I-") and len(label) > 2):
            raise wrong(path, number, f"the label {label!r} is none of O, B-TYPE and I-TYPE")
        words.append(word)
        labels.append(label)
    end()
    if not sentences:
        raise DataError(f"{path} has no sentence.")
    return sentences


def as_bio(labels: Sequence[str]) -> tuple[str, ...]:
    """The labels with B- at the beginning of each entity."""
    found, before = [], "O"
    for label in labels:
        begins = label.startswith("I-") and before[2:] != label[2:]
        found.append(f"B-{label[2:]}" if begins else label)
        before = label
    return tuple(found)


def entity_spans(labels: Sequence[str]) -> list[tuple[int, int, str]]:
    """(first, behind the last, type) of each entity, in order; an I- that continues nothing begins one."""
    spans: list[tuple[int, int, str]] = []
    start, kind = 0, ""
    for i, label in enumerate([*as_bio(labels), "O"]):
        if kind and not label.startswith("I-"):
            spans.append((start, i, kind))
            kind = ""
        if label.startswith("B-"):
            start, kind = i, label[2:]
    return spans


def entity_f1(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> float:
    """F1 of entities over sentences of BIO labels: one counts if its words and its type are exactly right."""
    right = found = there = 0
    for g, p in zip(gold, predicted, strict=True):
        true, guessed = set(entity_spans(g)), set(entity_spans(p))
        right, found, there = right + len(true & guessed), found + len(guessed), there + len(true)
    return 2 * right / (found + there) if found + there else 0.0
