"""CoNLL columns for named entities: one word per line, the label in the last column, blank lines between sentences.

Columns are separated by tabs, or by white space in a line without tabs. Lines that begin with -DOCSTART- separate
documents. Labels are O, B-TYPE and I-TYPE; an I- that continues no entity begins one (the IOB1 convention) and is
returned as B-.
"""

from os import PathLike

from ...errors import DataError
from ..tasks.bio import as_bio, is_bio
from .conllu import Sentence
from .lines import line_error, numbered_lines

_DOCUMENT = "-DOCSTART-"


def read_conll(path: str | PathLike[str]) -> list[Sentence]:
    """All sentences of a file, with their entities."""
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
            raise line_error(path, number, f"{line.strip()!r} has one column; a word and its label need two")
        if columns and len(parts) != columns:
            raise line_error(path, number, f"there are {len(parts)} columns, but {columns} in the preceding lines")
        columns = len(parts)
        word, label = parts[0].strip(), parts[-1].strip()
        if not word:
            raise line_error(path, number, "the word is empty")
        if not is_bio(label):
            raise line_error(path, number, f"the label {label!r} is not O, B-TYPE or I-TYPE")
        words.append(word)
        labels.append(label)
    end()
    if not sentences:
        raise DataError(f"{path} has no sentences.")
    return sentences
