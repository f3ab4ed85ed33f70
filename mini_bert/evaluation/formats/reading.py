"""Load the examples of a task from a file, or from a registered name such as hub:NAME."""

from collections.abc import Hashable, Iterable
from pathlib import Path

from ...text.tables import is_table
from .conll import read_conll
from .conllu import Sentence, read_conllu
from .named import DataSource, reader_of
from .squad import Question, read_questions
from .tables import Columns, Labelled, LabelledTable, read_labelled
from .word_tables import read_word_table


def load_texts(place: DataSource) -> list[Labelled]:
    """Labelled texts from a table or a registered name."""
    return load_labelled(place).records


def load_labelled(place: DataSource, columns: Columns | None = None, *, labelled: bool = True,
                  empty_labels: bool = False, known: Columns | None = None) -> LabelledTable:
    """The same, with the columns that were chosen; see `read_labelled`."""
    reader = reader_of(place)
    if reader is None:
        return read_labelled(place, columns, labelled=labelled, empty_labels=empty_labels, known=known)
    return LabelledTable(reader.labelled(str(place)), Columns(), "")


def load_sentences(place: DataSource) -> list[Sentence]:
    """Labelled words from CoNLL-U if the name ends in .conllu, from a table of lists if it ends as one's does, from
    CoNLL columns otherwise, or a registered name."""
    reader = reader_of(place)
    if reader is not None:
        return reader.sentences(str(place))
    if is_table(place) and Path(place).suffix != ".tsv":      # CoNLL columns are often named so
        return read_word_table(place)
    return read_conllu(place) if Path(place).suffix == ".conllu" else read_conll(place)


def load_questions(place: DataSource) -> tuple[list[Question], int]:
    """Questions from SQuAD's JSON or a registered name, and how many were left out because the answer is not there."""
    reader = reader_of(place)
    return read_questions(place) if reader is None else reader.questions(str(place))


def count_overlap(train: Iterable[Hashable], measured: Iterable[Hashable]) -> int:
    """How many of the examples to measure on also occur in training, compared by their input without the label."""
    known = set(train)
    return sum(example in known for example in measured)
