"""Load the examples of a task from a file, or from a registered name such as hub:NAME."""

from collections.abc import Hashable, Iterable
from pathlib import Path

from .conll import read_conll
from .conllu import Sentence, read_conllu
from .named import DataSource, reader_of
from .squad import Question, read_questions
from .tables import Labelled, read_table


def load_texts(place: DataSource) -> list[Labelled]:
    """Labelled texts from a GLUE TSV file or a registered name."""
    reader = reader_of(place)
    return read_table(place) if reader is None else reader.labelled(str(place))


def load_sentences(place: DataSource) -> list[Sentence]:
    """Labelled words from CoNLL-U if the name ends in .conllu, from CoNLL columns otherwise, or a registered name."""
    reader = reader_of(place)
    if reader is not None:
        return reader.sentences(str(place))
    return read_conllu(place) if Path(place).suffix == ".conllu" else read_conll(place)


def load_questions(place: DataSource) -> tuple[list[Question], int]:
    """Questions from SQuAD's JSON or a registered name, and how many were left out because the answer is not there."""
    reader = reader_of(place)
    return read_questions(place) if reader is None else reader.questions(str(place))


def count_overlap(train: Iterable[Hashable], measured: Iterable[Hashable]) -> int:
    """How many of the examples to measure on also occur in training, compared by their input without the label."""
    known = set(train)
    return sum(example in known for example in measured)
