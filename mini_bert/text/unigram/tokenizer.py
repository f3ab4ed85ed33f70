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

from ..added_tokens import AddedToken
from ..template import Template
from ..tokenizer import ID, Aligned, Tokenizer
from ..tokenizer_files import CONFIG, TOKENIZER_JSON, TokenizerFiles
from .aligned import AlignedText
from .files import UnigramSpec, claimed, read_spec, to_files

_CACHED = 5 << 15             # words per generation of the cache: about 20 MB
_LONGEST = 100                # characters of a word in the cache; longer ones will not repeat


class _DependsOnTextError(Exception):
    """A chunk whose ids depend on what is around it."""


class UnigramCache(dict[str, bytes]):
    """A cache: chunk between spaces -> ids, as the bytes of an array, so that one `b"".join` gives the ids of a text.

    A full cache becomes the old generation, and a new one starts; chunks of the old generation are copied on use.
    """

    def __init__(self, spec: UnigramSpec):
        super().__init__()
        self.spec = spec
        self.old_generation: dict[str, bytes] = {}

    def __missing__(self, chunk: str) -> bytes:
        ids = self.old_generation.get(chunk)
        if ids is None:
            words = self.spec.pipeline.words_of(chunk)
            if words is None:
                raise _DependsOnTextError
            segment = self.spec.model.segment
            ids = np.array([i for word in words for i, _ in segment(word)], ID).tobytes()
        if len(chunk) > _LONGEST:
            return ids
        if len(self) >= _CACHED:
            self.old_generation = dict(self)
            self.clear()
        self[chunk] = ids
        return ids


class UnigramTokenizer(Tokenizer):
    """SentencePiece's tokenizer: `encode` and `decode`, and `align` for the characters and word of each token."""

    kind = "unigram"
    files = frozenset({TOKENIZER_JSON, CONFIG})

    def __init__(self, spec: UnigramSpec):
        self.spec = spec
        self.vocabulary = spec.vocabulary
        self.template: Template = spec.template
        self.lowercase, self.strip_accents = (self._normalised(text) == plain for text, plain in (("A", "a"), ("é", "e")))
        self._cache = UnigramCache(spec)

    def _normalised(self, text: str) -> str:
        return self.spec.pipeline.normalise(AlignedText.of(text)).text.strip(" ▁")

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
        """Readable text: pieces joined to words. Special tokens are the added ones that say so: unknown may not be one."""
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


__all__ = ["AddedToken", "UnigramTokenizer"]
