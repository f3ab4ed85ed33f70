"""CoNLL columns for named entities: a word a line, the word first and its label last, blank lines between sentences.

Columns are separated by tabs, or by white space where a line has no tab. Lines that begin with -DOCSTART- separate
documents. Labels are O, B-TYPE and I-TYPE; an I- that continues nothing begins an entity, as in the first of the two
conventions, and is given as B-.
"""

from os import PathLike

from ...errors import DataError
from ..tasks.bio import as_bio, is_bio
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
        if not is_bio(label):
            raise wrong(path, number, f"the label {label!r} is none of O, B-TYPE and I-TYPE")
        words.append(word)
        labels.append(label)
    end()
    if not sentences:
        raise DataError(f"{path} has no sentence.")
    return sentences
