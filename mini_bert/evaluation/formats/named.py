"""Data sources that are not files, such as hub:NAME. A reader is registered by prefix and created on first use."""

from collections.abc import Callable, Iterable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ...errors import InputError
from ...late import complete

if TYPE_CHECKING:             # otherwise importing the package would load the readers of all formats
    from .conllu import Sentence
    from .squad import Question
    from .tables import Labelled

DataSource = str | PathLike[str]


class TaskReader(Protocol):
    """Reads a named data set into the records that the file readers return."""

    def labelled(self, name: str) -> "list[Labelled]":
        """Texts, or pairs of texts, with labels."""

    def sentences(self, name: str) -> "list[Sentence]":
        """Words with named entities."""

    def questions(self, name: str) -> "tuple[list[Question], int]":
        """Questions, and how many were left out because the answer does not occur in the text."""


_readers: dict[str, Callable[[], TaskReader]] = {}        # by prefix


def register_reader(prefix: str, make: Callable[[], TaskReader]) -> None:
    """Read names that begin with `prefix`, which ends in a colon, with the reader that `make` returns."""
    _readers[prefix] = make


def reader_of(place: DataSource) -> TaskReader | None:
    """The reader of this name; None for a file. An existing file wins over a registered prefix."""
    complete("names of data")
    name = str(place)
    make = next((make for prefix, make in _readers.items() if name.startswith(prefix)), None)
    return None if make is None or Path(name).exists() else make()


def require_files(places: Iterable[DataSource], wanted: str) -> None:
    """Refuse a registered name where only files can be read; `wanted` says which, such as "pos needs CoNLL-U"."""
    for place in places:
        if reader_of(place) is not None:
            prefix = str(place).partition(":")[0]
            raise InputError(f"{place} cannot be read here: {prefix}: names give texts with labels, named entities or "
                             f"questions, but {wanted}; name a file.")
