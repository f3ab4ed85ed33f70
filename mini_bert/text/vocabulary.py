"""A vocabulary: pieces by id, stored as a text file with one piece per line."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from hashlib import sha256
from os import PathLike

import numpy as np
import numpy.typing as npt

from ..errors import VocabularyError
from ..readers import LARGEST_JSON, read_text

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CONTINUATION = "##"       # the prefix of pieces inside a word
_UNWRITABLE = re.compile("[\n\r\ud800-\udfff]")        # line ends and lone surrogates


class Vocabulary(Sequence[str]):
    """Distinct pieces, including the special tokens."""

    def __init__(self, pieces: Iterable[str], source: str = "The vocabulary"):
        self.pieces = tuple(pieces)
        for i, piece in enumerate(self.pieces):
            if not isinstance(piece, str) or _UNWRITABLE.search(piece):
                raise VocabularyError(f"{source} has the piece {piece!r}, number {i}, which cannot be a line of text.")
        self.ids = {piece: i for i, piece in enumerate(self.pieces)}
        if len(self.ids) < len(self.pieces):
            twice = next(piece for i, piece in enumerate(self.pieces) if self.ids[piece] != i)
            raise VocabularyError(f"{source} has the piece {twice!r} twice.")
        missing = [token for token in SPECIAL_TOKENS if token not in self.ids]
        if missing:
            raise VocabularyError(f"{source} lacks the special token {missing[0]}; "
                                  f"it must have {' '.join(SPECIAL_TOKENS)}.")
        self.pad, self.unk, self.cls, self.sep, self.mask = (self.ids[token] for token in SPECIAL_TOKENS)

    def __getitem__(self, index: int) -> str:       # type: ignore[override]
        return self.pieces[index]

    def __len__(self) -> int:
        return len(self.pieces)

    def __iter__(self) -> Iterator[str]:
        return iter(self.pieces)

    @cached_property
    def ordinary(self) -> npt.NDArray[np.bool_]:
        """By id: is it an ordinary piece, not a special token?"""
        return np.array([piece not in SPECIAL_TOKENS for piece in self.pieces])

    @cached_property
    def ordinary_ids(self) -> npt.NDArray[np.int64]:
        """The ids of all ordinary pieces."""
        return np.flatnonzero(self.ordinary)

    @cached_property
    def continues(self) -> npt.NDArray[np.bool_]:
        """By id: does the piece continue a word?"""
        return np.array([piece.startswith(CONTINUATION) for piece in self.pieces])

    def digest(self) -> str:
        """A fingerprint of the pieces and their order."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        return sha256(self.to_text().encode("utf-8", "surrogatepass")).hexdigest()

    def to_text(self) -> str:
        return "".join(f"{piece}\n" for piece in self.pieces)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> "Vocabulary":
        """Read a vocab.txt; the id of a piece is the number of its line, from 0."""
        lines = read_text(path, VocabularyError, largest=LARGEST_JSON).split("\n")
        if lines and lines[-1] == "":
            lines.pop()
        return cls((line.removesuffix("\r") for line in lines), str(path))
