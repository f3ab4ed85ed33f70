"""Names that are not files, such as hub:NAME: who knows of them registers who reads them, loaded when it is used."""

from collections.abc import Callable, Iterable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ...errors import InputError

if TYPE_CHECKING:             # else importing the package would load the readers of all formats
    from .conllu import Sentence
    from .squad import Question
    from .tables import Labelled

Place = str | PathLike[str]


class TaskReader(Protocol):
    """Reads what a name stands for, as the readers of files do."""

    def labelled(self, name: str) -> "list[Labelled]":
        """Texts, or pairs of texts, with labels."""

    def sentences(self, name: str) -> "list[Sentence]":
        """Words with named entities."""

    def questions(self, name: str) -> "tuple[list[Question], int]":
        """Questions with their texts and answers, and how many were left out as their answer is not in the text."""


_readers: dict[str, Callable[[], TaskReader]] = {}        # by prefix


def register_reader(prefix: str, make: Callable[[], TaskReader]) -> None:
    """Names that begin with `prefix`, which ends in a colon, are read by what `make` gives."""
    _readers[prefix] = make


def reader_of(place: Place) -> TaskReader | None:
    """Who reads this name; None for a file, which may have a registered prefix too if it is there."""
    name = str(place)
    make = next((make for prefix, make in _readers.items() if name.startswith(prefix)), None)
    return None if make is None or Path(name).exists() else make()


def require_files(places: Iterable[Place], wanted: str) -> None:
    """Refuse a registered name where files alone are read; `wanted` says which, such as "pos needs CoNLL-U"."""
    for place in places:
        if reader_of(place) is not None:
            prefix = str(place).partition(":")[0]
            raise InputError(f"{place} cannot be read here: {prefix}: names serve texts with labels, named entities "
                             f"and questions, and {wanted}; name a file.")
