"""WordPiece: text to ids and back, as in BERT.

A word is split from left to right, each time taking the longest piece in the vocabulary; pieces inside a word start
with ##. A word that cannot be split is [UNK].

    unaffable -> un ##aff ##able

Natural text repeats itself, and a chunk between white space and punctuation always becomes the same ids. These are
cached, so most chunks take one look-up.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from ..chunk_cache import ChunkCache, as_bytes
from ..template import Template
from ..tokenizer import ID, Aligned, Tokenizer
from ..tokenizer_files import CONFIG, TOKENIZER_JSON, TokenizerFiles
from ..vocabulary import CONTINUATION, SPECIAL_TOKENS, Vocabulary
from .detokenize import detokenize
from .normalise import normaliser
from .tokenizer_files import VOCAB, TokenizerSpec, from_files, to_files

BERT_TEMPLATE = ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1")
MAX_WORD_LENGTH = 100         # characters; longer words are [UNK], as in BERT


class WordPieceCache(ChunkCache):
    """Chunk -> the ids of its words."""

    def __init__(self, vocabulary: Vocabulary, lowercase: bool, strip_accents: bool):
        super().__init__()
        self.table = normaliser(lowercase, strip_accents)
        self.unk = as_bytes(vocabulary.unk)
        self.beginnings = {piece: as_bytes(i) for piece, i in vocabulary.ids.items()
                           if not piece.startswith(CONTINUATION)}
        self.continuations = {piece.removeprefix(CONTINUATION): as_bytes(i) for piece, i in vocabulary.ids.items()
                              if piece.startswith(CONTINUATION)}
        self.longest_beginning, self.longest_continuation = _longest(self.beginnings), _longest(self.continuations)

    def find(self, chunk: str) -> bytes:
        words = self.table.words(chunk)
        # other chunks consist of several words, which are cached as chunks themselves
        return self.split_word(chunk) if words == [chunk] else \
            b"".join([self[word] if word.isascii() else self.split_word(word) for word in words])

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


def _longest(pieces: Iterable[str]) -> dict[str, int]:
    """For each character, the length of the longest piece that starts with it."""
    longest: dict[str, int] = {}
    for piece in pieces:
        if piece:
            longest[piece[0]] = max(longest.get(piece[0], 0), len(piece))
    return longest


class WordPieceTokenizer(Tokenizer):
    """BERT's tokenizer: `encode` and `decode`, and `align` for the characters and word of each token."""

    kind = "wordpiece"
    files = frozenset({VOCAB, CONFIG, TOKENIZER_JSON})

    def __init__(self, vocabulary: Vocabulary | Iterable[str], lowercase: bool = True,
                 strip_accents: bool | None = None):
        self.vocabulary = vocabulary if isinstance(vocabulary, Vocabulary) else Vocabulary(vocabulary)
        self.lowercase = lowercase
        self.strip_accents = lowercase if strip_accents is None else strip_accents
        self.template = Template.parse(*BERT_TEMPLATE, self.vocabulary.ids)
        self._pieces = WordPieceCache(self.vocabulary, self.lowercase, self.strip_accents)
        self._special = re.compile("(" + "|".join(map(re.escape, SPECIAL_TOKENS)) + ")")

    def __reduce__(self) -> tuple[Any, ...]:      # without the cache
        return WordPieceTokenizer, (self.vocabulary.pieces, self.lowercase, self.strip_accents)

    # ---------------------------------------------------------------- files

    @classmethod
    def claims(cls, files: TokenizerFiles) -> bool:
        """A bare vocabulary file, a vocab.txt, or a tokenizer.json whose model is WordPiece."""
        bare = files.is_file and files.path.name not in (VOCAB, TOKENIZER_JSON)
        return bare or files.algorithm == "WordPiece" or (files.full is None and files.has(VOCAB))

    @classmethod
    def read(cls, files: TokenizerFiles, lowercase: bool | None = None) -> "WordPieceTokenizer":
        return cls(*from_files(files, lowercase, MAX_WORD_LENGTH))

    def to_files(self) -> dict[str, bytes]:
        """vocab.txt, tokenizer_config.json and tokenizer.json."""
        return to_files(TokenizerSpec(self.vocabulary, self.lowercase, self.strip_accents), MAX_WORD_LENGTH)

    # ---------------------------------------------------------------- text to ids

    def ids(self, text: str) -> list[int]:
        """The ids of a text, without adding [CLS] and [SEP]. "[MASK]" in the text is the special token."""
        if "[" in text and self._special.search(text):
            return [i for part in self._special.split(text)
                    for i in ([self.vocabulary.ids[part]] if part in SPECIAL_TOKENS else self._plain(part))]
        return self._plain(text)

    def _plain(self, text: str) -> list[int]:
        ids: list[int] = np.frombuffer(self._bytes(text), ID).tolist()
        return ids

    def _bytes(self, text: str) -> bytes:
        return b"".join(map(self._pieces.__getitem__, self._pieces.table.chunks(text)))

    def ids_array(self, texts: Iterable[str]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
        """The ids of many texts in one array, and the number of ids of each: the fastest way for a whole corpus."""
        parts = [self._bytes(text) if "[" not in text else np.array(self.ids(text), ID).tobytes() for text in texts]
        lengths = np.array([len(part) // ID.itemsize for part in parts], np.uint32)
        return np.frombuffer(b"".join(parts), ID), lengths

    # ---------------------------------------------------------------- alignment with the text

    def aligned(self, text: str) -> Iterator[Aligned]:
        number, start = 0, 0
        for part in self._special.split(text):
            if part in SPECIAL_TOKENS:
                yield self.vocabulary.ids[part], (start, start + len(part)), number
                number += 1
            else:
                for letters, places in self._words(part, start):
                    done = 0
                    for i in np.frombuffer(self._pieces.split_word(letters), ID).tolist():
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

    def text_of(self, ids: Sequence[int]) -> str:
        """Pieces joined to words, with usual spacing; case and accents may have been lost."""
        return detokenize(self.vocabulary[i] for i in ids)
