"""A vocabulary: pieces by id, which of them are special, and which continue a word.

The special tokens have roles, for which tokenizers have names of their own: BERT pads with [PAD], RoBERTa with <pad>,
and GPT-2 not at all. `vocabulary.mask` is the id of the token with that role, whatever its name and number.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from hashlib import sha256
from os import PathLike
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import VocabularyError
from ..readers import LARGEST_JSON, read_text

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CONTINUATION = "##"       # the prefix of pieces inside a word
_UNWRITABLE = re.compile("[\n\r\ud800-\udfff]")        # line ends and lone surrogates


class Special(NamedTuple):
    """The names of the special tokens by role; None if a vocabulary has none for a role."""

    pad: str | None = None
    unk: str | None = None
    cls: str | None = None        # before a text
    sep: str | None = None        # after a text
    mask: str | None = None
    others: tuple[str, ...] = ()  # further tokens that are never words

    @property
    def roles(self) -> dict[str, str]:
        """Role -> name, of those that there are."""
        return {role: name for role in self._fields[:5] if (name := getattr(self, role)) is not None}


def continues_with_prefix(piece: str) -> bool:
    """WordPiece: does a piece continue a word?"""
    return piece.startswith(CONTINUATION)


class Vocabulary(Sequence[str]):
    """Distinct pieces, including the special tokens.

    Without `special` it is a WordPiece vocabulary: it has BERT's five special tokens, and each piece is a line of text.
    """

    def __init__(self, pieces: Iterable[str], source: str = "The vocabulary", *, special: Special | None = None,
                 continues: Callable[[str], bool] = continues_with_prefix):
        self.pieces = tuple(pieces)
        self._continues = continues
        for i, piece in enumerate(self.pieces):
            if not isinstance(piece, str) or (special is None and _UNWRITABLE.search(piece)):
                raise VocabularyError(f"{source} has the piece {piece!r}, number {i}, which cannot be a line of text.")
        self.ids = {piece: i for i, piece in enumerate(self.pieces)}
        if len(self.ids) < len(self.pieces):
            twice = next(piece for i, piece in enumerate(self.pieces) if self.ids[piece] != i)
            raise VocabularyError(f"{source} has the piece {twice!r} twice.")
        self.special = special or Special(*SPECIAL_TOKENS)
        self.special_tokens = tuple(dict.fromkeys([*self.special.roles.values(), *self.special.others]))
        missing = [token for token in self.special_tokens if token not in self.ids]
        if missing:
            raise VocabularyError(f"{source} lacks the special token {missing[0]}; "
                                  f"it must have {' '.join(self.special_tokens)}.")
        self.roles = {role: self.ids[name] for role, name in self.special.roles.items()}     # role -> id

    @property
    def pad(self) -> int:
        """The id that fills the rows of a batch: 0 if the vocabulary has none, since padding is masked anyway."""
        return self.roles.get("pad", 0)

    @property
    def unk(self) -> int:
        return self._role("unk")

    @property
    def cls(self) -> int:
        return self._role("cls")

    @property
    def sep(self) -> int:
        return self._role("sep")

    @property
    def mask(self) -> int:
        return self._role("mask")

    def _role(self, role: str) -> int:
        if role not in self.roles:
            raise VocabularyError(f"The vocabulary has no special token for {role}, which is needed here; its special "
                                  f"tokens are {' '.join(self.special_tokens) or 'none'}.")
        return self.roles[role]

    def __getitem__(self, index: int) -> str:       # type: ignore[override]
        return self.pieces[index]

    def __len__(self) -> int:
        return len(self.pieces)

    def __iter__(self) -> Iterator[str]:
        return iter(self.pieces)

    @cached_property
    def ordinary(self) -> npt.NDArray[np.bool_]:
        """By id: is it an ordinary piece, not a special token?"""
        found = np.ones(len(self.pieces), bool)
        found[[self.ids[token] for token in self.special_tokens]] = False
        return found

    @cached_property
    def ordinary_ids(self) -> npt.NDArray[np.int64]:
        """The ids of all ordinary pieces."""
        return np.flatnonzero(self.ordinary)

    @cached_property
    def continues(self) -> npt.NDArray[np.bool_]:
        """By id: does the piece continue a word?"""
        return np.array([self._continues(piece) for piece in self.pieces], bool)

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
