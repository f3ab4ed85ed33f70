"""What every tokenizer is: text to ids and back, with the characters of each token, and files.

A tokenizer of a new kind is a folder with a class that fills six places:

    claims, read     is a directory mine, and the tokenizer in it
    to_files         the files that `save` writes
    ids              the ids of a text, without added special tokens
    aligned          the same ids, each with its characters and its word
    text_of          readable text from ids

and a line in `opening.py`, so that `load_tokenizer` finds it. Everything else follows here.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..files import save_files
from .template import Template
from .tokenizer_files import TokenizerFiles
from .vocabulary import Vocabulary

ID = np.dtype(np.uint32)
Aligned = tuple[int, tuple[int, int], int | None]         # id, characters [start, end), index of the word


class Encoding(NamedTuple):
    """Ids with their characters and words in the text; added special tokens have neither."""

    ids: list[int]
    tokens: list[str]
    offsets: list[tuple[int, int]]        # characters of the text, [start, end)
    word_ids: list[int | None]            # index of the word in the text


class Batch(NamedTuple):
    """Padded sequences, ready for a model; arrays are (B, T)."""

    input_ids: npt.NDArray[np.int64]
    attention_mask: npt.NDArray[np.bool_]
    token_types: npt.NDArray[np.int64]


class Tokenizer(ABC):
    """Text to ids: `encode` and `decode`, and `align` for the characters and word of each token."""

    kind: ClassVar[str]                           # its word in `mini-bert tokenizer train --kind`
    files: ClassVar[frozenset[str]]               # the names of what `to_files` writes
    vocabulary: Vocabulary
    template: Template                            # the special tokens around a text, and around two
    lowercase: bool                               # does it fold case, and drop accents?
    strip_accents: bool
    keeps_spaces: ClassVar[bool] = False          # is the space before a word part of its pieces?

    def __len__(self) -> int:
        return len(self.vocabulary)

    @property
    def vocab_size(self) -> int:
        return len(self.vocabulary)

    # ---------------------------------------------------------------- files

    @classmethod
    @abstractmethod
    def claims(cls, files: TokenizerFiles) -> bool:
        """Are these the files of a tokenizer of this kind? Does not check that they are right."""

    @classmethod
    @abstractmethod
    def read(cls, files: TokenizerFiles, lowercase: bool | None = None) -> Self:
        """The tokenizer in these files; what would give other ids than its own library does is refused.

        `lowercase` is needed only if no file says whether the vocabulary is cased, and must not contradict one.
        """

    @abstractmethod
    def to_files(self) -> dict[str, bytes]:
        """Name -> content of the files that `read` understands, and transformers."""

    def save(self, directory: str | PathLike[str]) -> None:
        """Write its files, which transformers can load."""
        save_files(Path(directory), self.to_files())

    @classmethod
    def load(cls, path: str | PathLike[str], *, lowercase: bool | None = None) -> Self:
        """The tokenizer of a shipped model, of a directory, ours or Hugging Face's, or of a bare vocabulary file.

        `lowercase` is needed only if no file next to the vocabulary says whether it is cased, and must not contradict
        such a file.
        """
        return cls.read(TokenizerFiles.at(path), lowercase)

    # ---------------------------------------------------------------- text to ids

    @abstractmethod
    def ids(self, text: str) -> list[int]:
        """The ids of a text, without adding special tokens. The name of a special token in the text is that token."""

    def word_ids(self, word: str) -> list[int]:
        """The ids of a word as it is inside a text, with the space before it if that is part of its pieces."""
        return self.ids(" " + word if self.keeps_spaces else word)

    def with_mask(self, text: str) -> str:
        """The text with the name of this tokenizer's mask for each [MASK]."""
        name = self.vocabulary.special.mask
        return text if name is None else text.replace("[MASK]", name)

    def ids_array(self, texts: Iterable[str]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
        """The ids of many texts in one array, and the number of ids of each: the fastest way for a whole corpus."""
        parts = [np.array(self.ids(text), ID) for text in texts]
        lengths = np.array([len(part) for part in parts], np.uint32)
        return np.concatenate([np.zeros(0, ID), *parts]), lengths

    def encode(self, text: str, *, add_special_tokens: bool = True, max_length: int | None = None) -> list[int]:
        """The ids of a text with special tokens, such as [CLS] text [SEP], truncated to `max_length`."""
        ids = self.ids(checked(text))
        ids = ids[: room_for(max_length, self.template.added() if add_special_tokens else 0)]
        return self.with_special(ids) if add_special_tokens else ids

    def encode_pair(self, first: str, second: str, *, max_length: int | None = None) -> tuple[list[int], list[int]]:
        """The ids of two texts with special tokens, and their token types: of BERT, [CLS] first [SEP] second [SEP],
        0 up to the first [SEP], then 1.

        Truncation removes tokens from the end of the longer text until both fit.
        """
        a, b = self.ids(checked(first)), self.ids(checked(second))
        return self.template.apply(*truncate_longest_first(a, b, room_for(max_length, self.template.added(pair=True))))

    def with_special(self, ids: Sequence[int]) -> list[int]:
        """The ids of one text, with the special tokens before and after them."""
        return [*self.template.before, *ids, *self.template.after]

    def encode_batch(self, texts: Iterable[str] | Iterable[tuple[str, str]], *, max_length: int | None = None,
                     pad_to: int | None = None) -> Batch:
        """Texts, or pairs of texts, padded to the longest or to `pad_to`."""
        if isinstance(texts, str) or not isinstance(texts, Iterable):
            raise InputError("encode_batch takes a list of texts; for a single text, use encode.")
        rows = []
        for text in texts:
            if isinstance(text, str):
                room = room_for(max_length, self.template.added())
                rows.append(self.template.apply(self.ids(text)[:room]))
            elif isinstance(text, tuple | list) and len(text) == 2:
                rows.append(self.encode_pair(text[0], text[1], max_length=max_length))
            else:
                raise InputError(f"encode_batch takes texts or pairs of texts, not {shown(text)}.")
        if not rows:
            raise InputError("encode_batch needs at least one text.")
        longest = max(len(ids) for ids, _ in rows)
        width = longest if pad_to is None else integer(pad_to, "pad_to")
        if width < longest:
            raise InputError(f"pad_to={width} is less than the longest sequence, {longest}; set max_length as well.")
        batch = Batch(np.full((len(rows), width), self.vocabulary.pad), np.zeros((len(rows), width), bool),
                      np.zeros((len(rows), width), np.int64))
        for row, (ids, types) in enumerate(rows):
            batch.input_ids[row, : len(ids)] = ids
            batch.attention_mask[row, : len(ids)] = True
            batch.token_types[row, : len(ids)] = types
        return batch

    # ---------------------------------------------------------------- alignment with the text

    @abstractmethod
    def aligned(self, text: str) -> Iterator[Aligned]:
        """The ids of `ids`, each with its characters and the index of its word."""

    def align(self, text: str, *, add_special_tokens: bool = True, max_length: int | None = None) -> Encoding:
        """The ids of `encode`, each with its characters and word in the text."""
        rows: list[Aligned] = list(self.aligned(checked(text)))
        rows = rows[: room_for(max_length, self.template.added() if add_special_tokens else 0)]
        if add_special_tokens:
            before, after = ([(i, (0, 0), None) for i in ids] for ids in (self.template.before, self.template.after))
            rows = [*before, *rows, *after]
        return Encoding([row[0] for row in rows], [self.vocabulary[row[0]] for row in rows],
                        [row[1] for row in rows], [row[2] for row in rows])

    # ---------------------------------------------------------------- ids to text

    @abstractmethod
    def text_of(self, ids: Sequence[int]) -> str:
        """Readable text from ids that are in the vocabulary."""

    def tokenize(self, text: str) -> list[str]:
        """The pieces of a text."""
        return [self.vocabulary[i] for i in self.ids(checked(text))]

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = False) -> str:
        """Readable text: pieces joined to words; what the tokenizer does not keep, such as case, is lost."""
        if isinstance(ids, str) or not isinstance(ids, Iterable):
            raise InputError(f"decode takes a list of ids, not {shown(ids)}.")
        kept = []
        for i in ids:
            number = integer(i, "An id")
            if not 0 <= number < len(self.vocabulary):
                raise InputError(f"The id {number} is outside the vocabulary, whose ids are 0 to "
                                 f"{len(self.vocabulary) - 1}.")
            if not skip_special_tokens or self.vocabulary.ordinary[number]:
                kept.append(number)
        return self.text_of(kept)


def checked(text: str) -> str:
    """The text; anything that is not a str is refused."""
    if not isinstance(text, str):
        raise InputError(f"A text must be a str, not {type(text).__name__}.")
    return text


def integer(number: Any, name: str) -> int:
    """The whole number; anything else is refused."""
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        raise InputError(f"{name} must be a whole number, not {shown(number)}.")
    return int(number)


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 and "\n" not in text else f"a {type(value).__name__}"


def room_for(max_length: int | None, special: int) -> int | None:
    """How many ids of the text fit in addition to the special tokens."""
    if max_length is None:
        return None
    room = integer(max_length, "max_length") - special
    if room < 0:
        raise InputError(f"max_length={max_length} has no room for the {special} special tokens." if special else
                         f"max_length must be at least 0, not {max_length}.")
    return room


Ids = TypeVar("Ids", list[int], npt.NDArray[Any])


def truncate_longest_first(a: Ids, b: Ids, room: int | None) -> tuple[Ids, Ids]:
    """Truncate two texts to `room` ids in total, the longer one first."""
    if room is None or len(a) + len(b) <= room:
        return a, b
    half = room // 2
    if len(a) <= half:
        return a, b[: room - len(a)]
    if len(b) <= half:
        return a[: room - len(b)], b
    if len(a) > len(b):                       # an odd remaining place goes to the longer one, or to the second
        return a[: room - half], b[:half]
    return a[:half], b[: room - half]
