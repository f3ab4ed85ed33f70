"""The Unigram tokenizer of SentencePiece: ALBERT's, XLNet's, DeBERTa v3's, opened from tokenizer.json or a .model file.

A text is normalised, spaces are written as ▁, and each word is segmented into the most probable pieces (viterbi.py):

    a tokenizer -> ▁a ▁token izer

Natural text repeats its words, and a word between single spaces mostly becomes the same ids in every text. These are
cached, so most words take one look-up; other texts go the long way, part by part.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ..chunk_cache import ChunkCache
from ..tokenizer import ID, Aligned, Tokenizer
from ..tokenizer_files import CONFIG, TOKENIZER_JSON, TokenizerFiles
from .files import UnigramSpec, claimed, read_spec, to_files


class _DependsOnTextError(Exception):
    """A chunk whose ids depend on what is around it."""


class ChunkIds(ChunkCache):
    """Chunk between spaces -> ids, if they are the same in every text."""

    def __init__(self, spec: UnigramSpec):
        super().__init__()
        self.spec = spec

    def find(self, chunk: str) -> bytes:
        words = self.spec.pipeline.words_of(chunk)
        if words is None:
            raise _DependsOnTextError
        return np.array([i for word in words for i, _ in self.spec.model.segment(word)], ID).tobytes()


class UnigramTokenizer(Tokenizer):
    """SentencePiece's tokenizer: `encode` and `decode`, and `align` for the characters and word of each token."""

    kind = "unigram"
    files = frozenset({TOKENIZER_JSON, CONFIG})

    def __init__(self, spec: UnigramSpec):
        self.spec = spec
        self.vocabulary = spec.vocabulary
        self.template = spec.template
        self.lowercase, self.strip_accents = spec.folds("A", "a"), spec.folds("é", "e")
        self._cache = ChunkIds(spec)

    def __reduce__(self) -> tuple[Any, ...]:      # without the cache
        return _opened, (self.spec.content,)

    # ---------------------------------------------------------------- files

    @classmethod
    def claims(cls, files: TokenizerFiles) -> bool:
        return claimed(files)

    @classmethod
    def read(cls, files: TokenizerFiles, lowercase: bool | None = None) -> Self:
        return cls(read_spec(files, lowercase))

    def to_files(self) -> dict[str, bytes]:
        return to_files(self.spec)

    # ---------------------------------------------------------------- text to ids

    def ids(self, text: str) -> list[int]:
        ids: list[int] = np.frombuffer(self._bytes(text), ID).tolist()
        return ids

    def _bytes(self, text: str) -> bytes:
        if self.spec.pipeline.by_words:
            try:
                return b"".join(map(self._cache.__getitem__, text.split(" ")))
            except _DependsOnTextError:
                pass
        return np.array([i for i, _, _ in self.aligned(text)], ID).tobytes()

    def ids_array(self, texts: Iterable[str]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
        parts = [self._bytes(text) for text in texts]
        lengths = np.array([len(part) // ID.itemsize for part in parts], np.uint32)
        return np.frombuffer(b"".join(parts), ID), lengths

    def aligned(self, text: str) -> Iterator[Aligned]:
        segment = self.spec.model.segment
        for number, (part, token) in enumerate(self.spec.pipeline.parts(text)):
            start, before = 0, -1
            for i, end in segment(part.text) if token is None else [(token.id, len(part.text))]:
                start = before if end == start else start         # bytes of one character share its place
                yield i, part.span(start, end), number
                before, start = start, end

    # ---------------------------------------------------------------- ids to text

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = False) -> str:
        """Readable text: pieces joined to words. Special tokens are those that their file calls so."""
        if skip_special_tokens and isinstance(ids, Iterable) and not isinstance(ids, str):
            special = self.spec.pipeline.added.special
            ids = [i for i in ids if not (isinstance(i, int | np.integer) and int(i) in special)]
        return super().decode(ids)

    def text_of(self, ids: Sequence[int]) -> str:
        spelled = self.spec.pipeline.added.spelled
        pieces = [spelled.get(i) or self.vocabulary[i] for i in ids]
        if self.spec.decoders is None:
            return " ".join(pieces)
        for decoder in self.spec.decoders:
            pieces = decoder(pieces)
        return "".join(pieces)


def _opened(content: dict[str, Any]) -> UnigramTokenizer:
    return UnigramTokenizer(UnigramSpec.of(content, "The tokenizer"))
