"""Byte-level byte-pair encoding: text to ids and back, as in GPT-2, RoBERTa and ModernBERT.

A text is split into words (splitting.py), each with the space before it. The bytes of a word in UTF-8 are merged to
pieces (merging.py). Every text can be written in bytes, so no word is unknown, and decoding gives the text back.

    "It's 15°C"  ->  It | 's |  15 | ° | C  ->  It 's Ġ15 Â° C

A word always becomes the same ids. These are cached, so most words take one look-up; the words of many texts that are
new are merged together (batch_merging.py).
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, chain, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ..chunk_cache import ChunkCache, as_bytes
from ..pipeline.added_tokens import WHITE_SPACE, AddedToken, Finder
from ..pipeline.aligned import Span
from ..pipeline.unicode_forms import nfc
from ..tokenizer import ID, Aligned, Tokenizer
from ..tokenizer_files import CONFIG, TOKENIZER_JSON, TokenizerFiles
from .alphabet import CHARACTERS, SPACE, require_bytes, to_bytes
from .batch_merging import BatchMerger
from .merging import SHORT, Merger
from .spec import MERGES, VOCAB, ByteBPESpec
from .splitting import words
from .tokenizer_files import from_files, to_files

_MANY = 200                   # words that are worth merging together
_BLOCK = 1 << 20              # characters of texts whose new words are looked up together


class WordIds(ChunkCache):
    """Word -> ids."""

    def __init__(self, merger: Merger):
        super().__init__()
        self.merger = merger

    def find(self, word: str) -> bytes:
        return array("I", self.merger(as_utf8(word))).tobytes()

    @cached_property
    def _batch(self) -> BatchMerger:
        return BatchMerger(self.merger)

    def find_many(self, words: Iterable[str]) -> None:
        """Find the ids of many words together, which takes less time than one by one."""
        self.make_room()
        new = {as_utf8(word): word for word in set(words).difference(self, self.old_generation) if len(word) <= SHORT}
        whole = self.merger.whole
        merged = [data for data in new if data not in whole]
        if len(merged) >= _MANY:
            self.update(zip(map(new.__getitem__, merged), self._batch(merged), strict=True))
            self.update((new[data], as_bytes(whole[data])) for data in new.keys() & whole.keys())


class ByteBPETokenizer(Tokenizer):
    """GPT-2's tokenizer: `encode` and `decode`, and `align` for the characters and word of each token."""

    kind = "byte_bpe"
    files = frozenset({VOCAB, MERGES, CONFIG, TOKENIZER_JSON})
    lowercase = strip_accents = False
    keeps_spaces = True

    def __init__(self, spec: ByteBPESpec, source: str = "The vocabulary"):
        self.spec, self.vocabulary, self.template = spec, spec.vocabulary, spec.template
        ids = self.vocabulary.ids
        merges = [(ids[a], ids[b], ids[a + b]) for a, b in spec.merges]
        single = [ids.get(character) for character in CHARACTERS]
        spelled = {i: bytes([byte]) for byte, i in enumerate(single) if i is not None}
        spelled |= {made: require_bytes(self.vocabulary[made], source) for *_, made in merges}
        unk = spec.settings.unk
        merger = Merger(spelled, merges, single, unk=None if unk is None else ids[unk])
        if spec.settings.ignore_merges:
            merger.whole |= {data: i for piece, i in ids.items() if (data := to_bytes(piece))}
        self._words = WordIds(merger)
        self._raw, self._normalised = (Finder([token for token in spec.added if token.normalized == wanted])
                                       for wanted in (False, True))
        self._beginnings = self._raw.beginnings | self._normalised.beginnings

    def __reduce__(self) -> tuple[Any, ...]:      # without the cache
        return ByteBPETokenizer, (self.spec,)

    # ---------------------------------------------------------------- files

    @classmethod
    def claims(cls, files: TokenizerFiles) -> bool:
        """A tokenizer.json of BPE on bytes, or vocab.json with merges.txt."""
        if files.is_file and files.path.name not in (VOCAB, MERGES, TOKENIZER_JSON):
            return False
        if files.full is not None:
            kinds = [part.get("type") for part in files.parts("pre_tokenizer")]
            return files.algorithm == "BPE" and "ByteLevel" in kinds
        return files.has(VOCAB) and files.has(MERGES)

    @classmethod
    def read(cls, files: TokenizerFiles, lowercase: bool | None = None) -> "ByteBPETokenizer":
        return cls(from_files(files, lowercase), str(files.directory))

    def to_files(self) -> dict[str, bytes]:
        """vocab.json, merges.txt, tokenizer_config.json and tokenizer.json."""
        return to_files(self.spec)

    # ---------------------------------------------------------------- text to ids

    def ids(self, text: str) -> list[int]:
        ids: list[int] = np.frombuffer(self._bytes(text), ID).tolist()
        return ids

    def ids_array(self, texts: Iterable[str]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
        parts = [part for block in _blocks(texts) for part in self._block(block)]
        return np.frombuffer(b"".join(parts), ID), np.array([len(part) // ID.itemsize for part in parts], np.uint32)

    def _block(self, texts: Sequence[str]) -> list[bytes]:
        """The ids of texts whose words fit in memory: new words are looked up together."""
        rows = [None if self._may_have_token(text) else self._split(text) for text in texts]
        self._words.find_many(chain.from_iterable(row for row in rows if row is not None))
        return [self._bytes(text) if row is None else self._joined(row) for text, row in zip(texts, rows, strict=True)]

    def _bytes(self, text: str) -> bytes:
        """The ids, as the bytes of an array."""
        if self._may_have_token(text):
            return b"".join(self._joined(words(self._prefixed(part))) if token is None else as_bytes(token.id)
                            for token, part, _ in self._parts(text))
        return self._joined(self._split(text))

    def _may_have_token(self, text: str) -> bool:
        return any(map(text.__contains__, self._beginnings))

    def _split(self, text: str) -> list[str]:
        """The words of a text without added tokens."""
        return words(self._prefixed(nfc(text)[0] if self.spec.settings.nfc else text))

    def _joined(self, found: Iterable[str]) -> bytes:
        return b"".join(map(self._words.__getitem__, found))

    def _prefixed(self, text: str) -> str:
        """With a space in front, if there is to be one."""
        return " " + text if self.spec.settings.add_prefix_space and text and not text.startswith(" ") else text

    def _parts(self, text: str) -> Iterator[tuple[AddedToken | None, str, list[Span]]]:
        """Added tokens and the normalised text between them; the places of a part are those of its characters."""
        for token, start, end in self._raw.split(text):
            part = text[start:end]
            places = [(i, i + 1) for i in range(start, end)]
            if token is not None:
                yield token, part, places
                continue
            normalised, own = nfc(part) if self.spec.settings.nfc else (part, None)
            places = places if own is None else [(start + a, start + b) for a, b in own]
            for inner, begin, stop in self._normalised.split(normalised):
                yield inner, normalised[begin:stop], places[begin:stop]

    # ---------------------------------------------------------------- alignment with the text

    def aligned(self, text: str) -> Iterator[Aligned]:
        number, first = 0, True
        for token, part, places in self._parts(text):
            if token is not None:
                yield token.id, self._trimmed(part, places[0][0], places[-1][1], first), number
                number, first = number + 1, False
                continue
            whole = self._prefixed(part)
            places = places[:1] * (len(whole) - len(part)) + places        # an added space is where the first letter is
            ends = list(accumulate(map(len, words(whole)), initial=0))
            for start, end in pairwise(ends):
                word = whole[start:end]
                of_bytes = [place for letter, place in zip(word, places[start:end], strict=True)
                            for _ in as_utf8(letter)]
                done = 0
                for i in np.frombuffer(self._words[word], ID).tolist():
                    length = len(self._words.merger.spelled.get(i, b"?"))
                    characters = of_bytes[done : done + length]
                    yield i, self._trimmed(self.vocabulary[i], characters[0][0], characters[-1][1], first), number
                    done += length
                    first = False
                number += 1

    def _trimmed(self, piece: str, start: int, end: int, first: bool) -> tuple[int, int]:
        """The characters of a token, without white space if the settings say so."""
        if not self.spec.settings.trim_offsets:
            return start, end
        white = WHITE_SPACE + SPACE
        leading, trailing = len(piece) - len(piece.lstrip(white)), len(piece) - len(piece.rstrip(white))
        if leading == 1 and (first or start == 0) and self.spec.settings.keep_prefix:
            leading = 0
        start = min(start + leading, end)
        return start, max(end - trailing, start) if end >= trailing else end

    # ---------------------------------------------------------------- ids to text

    def text_of(self, ids: Sequence[int]) -> str:
        """The text of the bytes; bytes that are not UTF-8, such as half a character, are replaced."""
        data = b"".join(to_bytes(piece) or piece.encode("utf-8") for piece in map(self.vocabulary.__getitem__, ids))
        return data.decode("utf-8", "replace")


def as_utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _blocks(texts: Iterable[str]) -> Iterator[list[str]]:
    """The texts in order, some at a time."""
    block, size = [], 0
    for text in texts:
        block.append(text)
        size += len(text)
        if size >= _BLOCK:
            yield block
            block, size = [], 0
    yield block
