"""WordPiece: text to ids and back, as in BERT.

A word is split from left to right, each time taking the longest piece in the vocabulary; pieces inside a word start
with ##. A word that cannot be split is [UNK].

    unaffable -> un ##aff ##able

Natural text repeats itself, and a chunk between white space and punctuation always becomes the same ids. These are
cached, so most chunks take one look-up.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...files import save_files
from ...pretrained import model_directory
from ..vocabulary import CONTINUATION, SPECIAL_TOKENS, Vocabulary
from .detokenize import detokenize
from .normalise import normaliser
from .tokenizer_files import TokenizerSpec, from_files, to_files

MAX_WORD_LENGTH = 100         # characters; longer words are [UNK], as in BERT
_CACHED = 5 << 15             # chunks per generation of the cache: about 20 MB
_ID = np.dtype(np.uint32)


class WordPieceCache(dict[str, bytes]):
    """A cache: chunk -> ids, as the bytes of an array, so that one `b"".join` gives the ids of a text.

    A full cache becomes the old generation, and a new one starts; chunks of the old generation are copied on use.
    """

    def __init__(self, vocabulary: Vocabulary, lowercase: bool, strip_accents: bool):
        super().__init__()
        self.table = normaliser(lowercase, strip_accents)
        self.unk = _as_bytes(vocabulary.unk)
        self.beginnings = {piece: _as_bytes(i) for piece, i in vocabulary.ids.items()
                           if not piece.startswith(CONTINUATION)}
        self.continuations = {piece.removeprefix(CONTINUATION): _as_bytes(i) for piece, i in vocabulary.ids.items()
                              if piece.startswith(CONTINUATION)}
        self.longest_beginning, self.longest_continuation = _longest(self.beginnings), _longest(self.continuations)
        self.old_generation: dict[str, bytes] = {}

    def __missing__(self, chunk: str) -> bytes:
        ids = self.old_generation.get(chunk)
        if ids is None:
            words = self.table.words(chunk)
            # other chunks consist of several words, which are cached as chunks themselves
            ids = self.split_word(chunk) if words == [chunk] else \
                b"".join([self[word] if word.isascii() else self.split_word(word) for word in words])
        if len(chunk) > MAX_WORD_LENGTH:              # text without spaces, which will not repeat
            return ids
        if len(self) >= _CACHED:
            self.old_generation = dict(self)
            self.clear()
        self[chunk] = ids
        return ids

    def split_word(self, word: str) -> bytes:
        """The ids of a normalised word: the longest pieces, from the left."""
        if len(word) > MAX_WORD_LENGTH:
            return self.unk
        ids = b""
        start, pieces, longest = 0, self.beginnings, self.longest_beginning
        while start < len(word):
            for end in range(min(len(word), start + longest.get(word[start], 0)), start, -1):
                found = pieces.get(word[start:end])
                if found is not None:
                    break
            else:
                return self.unk
            ids += found
            start, pieces, longest = end, self.continuations, self.longest_continuation
        return ids


def _as_bytes(number: int) -> bytes:
    return number.to_bytes(_ID.itemsize, sys.byteorder)


def _longest(pieces: Iterable[str]) -> dict[str, int]:
    """For each character, the length of the longest piece that starts with it."""
    longest: dict[str, int] = {}
    for piece in pieces:
        if piece:
            longest[piece[0]] = max(longest.get(piece[0], 0), len(piece))
    return longest


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


class WordPieceTokenizer:
    """BERT's tokenizer: `encode` and `decode`, and `align` for the characters and word of each token."""

    def __init__(self, vocabulary: Vocabulary | Iterable[str], lowercase: bool = True,
                 strip_accents: bool | None = None):
        self.vocabulary = vocabulary if isinstance(vocabulary, Vocabulary) else Vocabulary(vocabulary)
        self.lowercase = lowercase
        self.strip_accents = lowercase if strip_accents is None else strip_accents
        self._pieces = WordPieceCache(self.vocabulary, self.lowercase, self.strip_accents)
        self._special = re.compile("(" + "|".join(map(re.escape, SPECIAL_TOKENS)) + ")")

    def __len__(self) -> int:
        return len(self.vocabulary)

    @property
    def vocab_size(self) -> int:
        return len(self.vocabulary)

    def __reduce__(self) -> tuple[Any, ...]:      # without the cache
        return WordPieceTokenizer, (self.vocabulary.pieces, self.lowercase, self.strip_accents)

    # ---------------------------------------------------------------- files

    def save(self, directory: str | PathLike[str]) -> None:
        """Write vocab.txt, tokenizer_config.json and tokenizer.json, which transformers can load."""
        spec = TokenizerSpec(self.vocabulary, self.lowercase, self.strip_accents)
        save_files(Path(directory), to_files(spec, MAX_WORD_LENGTH))

    @classmethod
    def load(cls, path: str | PathLike[str], *, lowercase: bool | None = None) -> "WordPieceTokenizer":
        """The tokenizer of a shipped model, of a directory, ours or Hugging Face's, or of a bare vocabulary file.

        `lowercase` is needed only if no file next to the vocabulary says whether it is cased, and must not contradict
        such a file.
        """
        return cls(*from_files(model_directory(path), lowercase, MAX_WORD_LENGTH))

    # ---------------------------------------------------------------- text to ids

    def ids(self, text: str) -> list[int]:
        """The ids of a text, without adding [CLS] and [SEP]. "[MASK]" in the text is the special token."""
        if "[" in text and self._special.search(text):
            return [i for part in self._special.split(text)
                    for i in ([self.vocabulary.ids[part]] if part in SPECIAL_TOKENS else self._plain(part))]
        return self._plain(text)

    def _plain(self, text: str) -> list[int]:
        ids: list[int] = np.frombuffer(self._bytes(text), _ID).tolist()
        return ids

    def _bytes(self, text: str) -> bytes:
        return b"".join(map(self._pieces.__getitem__, self._pieces.table.chunks(text)))

    def ids_array(self, texts: Iterable[str]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
        """The ids of many texts in one array, and the number of ids of each: the fastest way for a whole corpus."""
        parts = [self._bytes(text) if "[" not in text else np.array(self.ids(text), _ID).tobytes() for text in texts]
        lengths = np.array([len(part) // _ID.itemsize for part in parts], np.uint32)
        return np.frombuffer(b"".join(parts), _ID), lengths

    def encode(self, text: str, *, add_special_tokens: bool = True, max_length: int | None = None) -> list[int]:
        """The ids of [CLS] text [SEP], truncated to `max_length`."""
        ids = self.ids(_checked(text))
        ids = ids[: _room(max_length, 2 if add_special_tokens else 0)]
        return self.with_special(ids) if add_special_tokens else ids

    def encode_pair(self, first: str, second: str, *, max_length: int | None = None) -> tuple[list[int], list[int]]:
        """The ids of [CLS] first [SEP] second [SEP], and their token types: 0 up to the first [SEP], then 1.

        Truncation removes tokens from the end of the longer text until both fit.
        """
        a, b = self.ids(_checked(first)), self.ids(_checked(second))
        a, b = truncate_longest_first(a, b, _room(max_length, 3))
        ids = [*self.with_special(a), *b, self.vocabulary.sep]
        return ids, [0] * (len(a) + 2) + [1] * (len(b) + 1)

    def with_special(self, ids: Sequence[int]) -> list[int]:
        """[CLS] ids [SEP]."""
        return [self.vocabulary.cls, *ids, self.vocabulary.sep]

    def encode_batch(self, texts: Iterable[str] | Iterable[tuple[str, str]], *, max_length: int | None = None,
                     pad_to: int | None = None) -> Batch:
        """Texts, or pairs of texts, padded to the longest or to `pad_to`."""
        if isinstance(texts, str) or not isinstance(texts, Iterable):
            raise InputError("encode_batch takes a list of texts; for a single text, use encode.")
        rows = []
        for text in texts:
            if isinstance(text, str):
                ids = self.encode(text, max_length=max_length)
                rows.append((ids, [0] * len(ids)))
            elif isinstance(text, tuple | list) and len(text) == 2:
                rows.append(self.encode_pair(text[0], text[1], max_length=max_length))
            else:
                raise InputError(f"encode_batch takes texts or pairs of texts, not {_shown(text)}.")
        if not rows:
            raise InputError("encode_batch needs at least one text.")
        longest = max(len(ids) for ids, _ in rows)
        width = longest if pad_to is None else _integer(pad_to, "pad_to")
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

    def align(self, text: str, *, add_special_tokens: bool = True, max_length: int | None = None) -> Encoding:
        """The ids of `encode`, each with its characters and word in the text."""
        found = list(self._aligned(_checked(text)))
        found = found[: _room(max_length, 2 if add_special_tokens else 0)]
        rows: list[tuple[int, tuple[int, int], int | None]] = list(found)
        if add_special_tokens:
            rows = [(self.vocabulary.cls, (0, 0), None), *rows, (self.vocabulary.sep, (0, 0), None)]
        return Encoding([row[0] for row in rows], [self.vocabulary[row[0]] for row in rows],
                        [row[1] for row in rows], [row[2] for row in rows])

    def _aligned(self, text: str) -> Iterator[tuple[int, tuple[int, int], int]]:
        number, start = 0, 0
        for part in self._special.split(text):
            if part in SPECIAL_TOKENS:
                yield self.vocabulary.ids[part], (start, start + len(part)), number
                number += 1
            else:
                for letters, places in self._words(part, start):
                    done = 0
                    for i in np.frombuffer(self._pieces.split_word(letters), _ID).tolist():
                        length = len(letters) if i == self.vocabulary.unk else \
                            len(self.vocabulary[i]) - (len(CONTINUATION) if done else 0)
                        yield i, (places[done], places[done + length - 1] + 1), number
                        done += length
                    number += 1
            start += len(part)

    def _words(self, text: str, start: int) -> Iterator[tuple[str, list[int]]]:
        """The normalised words, each with the positions of its letters in the text."""
        letters: list[str] = []
        places: list[int] = []
        table = self._pieces.table
        for place, character in chain(table.characters(text), [(len(text), " ")]):
            for letter in table[ord(character)]:
                if letter != " ":
                    letters.append(letter)
                    places.append(start + place)
                elif letters:
                    yield "".join(letters), places
                    letters, places = [], []

    # ---------------------------------------------------------------- ids to text

    def tokenize(self, text: str) -> list[str]:
        """The pieces of a text."""
        return [self.vocabulary[i] for i in self.ids(_checked(text))]

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = False) -> str:
        """Readable text: pieces joined to words, with usual spacing; case and accents may have been lost."""
        if isinstance(ids, str) or not isinstance(ids, Iterable):
            raise InputError(f"decode takes a list of ids, not {_shown(ids)}.")
        pieces = []
        for i in ids:
            number = _integer(i, "An id")
            if not 0 <= number < len(self.vocabulary):
                raise InputError(f"The id {number} is outside the vocabulary, whose ids are 0 to "
                                 f"{len(self.vocabulary) - 1}.")
            piece = self.vocabulary[number]
            if not (skip_special_tokens and piece in SPECIAL_TOKENS):
                pieces.append(piece)
        return detokenize(pieces)


def _checked(text: str) -> str:
    if not isinstance(text, str):
        raise InputError(f"A text must be a str, not {type(text).__name__}.")
    return text


def _integer(number: Any, name: str) -> int:
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        raise InputError(f"{name} must be a whole number, not {_shown(number)}.")
    return int(number)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 and "\n" not in text else f"a {type(value).__name__}"


def _room(max_length: int | None, special: int) -> int | None:
    """How many ids of the text fit in addition to the special tokens."""
    if max_length is None:
        return None
    room = _integer(max_length, "max_length") - special
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
