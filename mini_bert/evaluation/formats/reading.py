"""Examples of a task from where they are: a file in its format, or a registered name."""

from collections.abc import Hashable, Iterable
from pathlib import Path

from .conll import read_conll
from .conllu import Sentence, read_conllu
from .named import Place, reader_of
from .squad import Question, read_questions
from .tables import Labelled, read_table


def labelled_texts(place: Place) -> list[Labelled]:
    """GLUE's TSV, or a registered name."""
    reader = reader_of(place)
    return read_table(place) if reader is None else reader.labelled(str(place))


def labelled_words(place: Place) -> list[Sentence]:
    """CoNLL-U if the name ends in .conllu, else CoNLL columns; or a registered name."""
    reader = reader_of(place)
    if reader is not None:
        return reader.sentences(str(place))
    return read_conllu(place) if Path(place).suffix == ".conllu" else read_conll(place)


def asked_questions(place: Place) -> tuple[list[Question], int]:
    """SQuAD's JSON, or a registered name; and how many were left out as their answer is not in the text."""
    reader = reader_of(place)
    return read_questions(place) if reader is None else reader.questions(str(place))


def also_in(train: Iterable[Hashable], measured: Iterable[Hashable]) -> int:
    """How many of the examples to measure on are among those to train on, their labels apart.

    Examples are given by what the model reads of them, such as the words of a sentence.
    """
    known = set(train)
    return sum(example in known for example in measured)
