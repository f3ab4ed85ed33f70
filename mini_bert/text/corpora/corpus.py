"""A prepared corpus: all tokens in one file, with an index of sentences and documents.

    corpus.json      counts, options, the vocabulary's fingerprint, a digest of all this and of checksums.bin
    tokens.bin       ids, uint16 or uint32, without [CLS] and [SEP]
    sentences.bin    uint64: the start of each sentence in tokens.bin, then the number of tokens
    documents.bin    uint64: the first sentence of each document, then the number of sentences
    splits.bin       uint8 per document: 0 for training, 1 held out
    checksums.bin    uint32: a CRC-32 of each block of these four files, in this order
    vocab.txt, tokenizer_config.json, tokenizer.json

The directory appears when it is complete. Each block of a file is verified when it is read for the first time
(file_array.py), so opening a corpus costs the same whatever its size. Corpora prepared before there were checksums open
without them.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from hashlib import blake2b
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import CorpusError
from ...readers import read_json
from ..opening import load_tokenizer, tokenizer_file_names
from ..tokenizer import Tokenizer
from .file_array import FileArray, block_count

MANIFEST = "corpus.json"
SUMS = "checksums.bin"
ARRAYS = ("tokens.bin", "sentences.bin", "documents.bin", "splits.bin")
FILES = {MANIFEST, SUMS, *ARRAYS, *tokenizer_file_names()}
SPLITS = ("train", "heldout")
VERSION = 1
# for fingerprints: elements in a block, bytes of the largest file read completely, blocks sampled from a larger one
_BLOCK, _WHOLE, _SAMPLES = 1 << 18, 1 << 31, 1000


@dataclass
class Manifest:
    """The content of corpus.json."""

    tokens: int = 0
    sentences: int = 0
    documents: int = 0
    heldout_documents: int = 0
    unknown_tokens: int = 0
    duplicate_paragraphs: int = 0
    paragraphs: int = 0
    bytes_read: int = 0
    invalid_bytes: int = 0
    first_invalid: str | None = None
    dtype: str = "uint16"
    vocab_size: int = 0
    vocab_digest: str = ""
    lowercase: bool | None = None         # of the tokenizer; None in older corpora
    strip_accents: bool | None = None
    sources: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)     # files of folders that cannot be read, and why
    options: dict[str, Any] = field(default_factory=dict)
    format_version: int = VERSION
    digest: str = ""                      # of the rest and of checksums.bin; empty in older corpora

    def to_json(self) -> str:
        content = asdict(self)
        for name in ("digest", "skipped"):                # which older corpora do not have
            if not content[name]:
                del content[name]
        return json.dumps(content, indent=2) + "\n"

    def digest_with(self, sums: bytes) -> str:
        """What `digest` must be."""
        return blake2b(replace(self, digest="").to_json().encode() + sums, digest_size=16).hexdigest()


class Corpus:
    """An open corpus."""

    def __init__(self, directory: str | PathLike[str]):
        self.directory = Path(directory)
        self.manifest = _read_manifest(self.directory)
        m = self.manifest
        sizes = ((m.dtype, m.tokens), ("uint64", m.sentences + 1), ("uint64", m.documents + 1), ("uint8", m.documents))
        self.tokens, self.sentences, documents, splits = self._arrays(sizes)
        self.documents, self.splits = documents[:], splits[:]
        self._tokenizer: Tokenizer | None = None
        if int(self.sentences[-1]) != m.tokens or int(self.documents[-1]) != m.sentences \
                or (np.diff(self.documents.astype(np.int64)) < 0).any():
            raise CorpusError(f"The index of {self.directory} is damaged; prepare the corpus again.")

    @classmethod
    def open(cls, corpus: "Corpus | str | PathLike[str]") -> "Corpus":
        """The corpus in a directory, or one that is already open."""
        return corpus if isinstance(corpus, Corpus) else cls(corpus)

    def _arrays(self, sizes: Sequence[tuple[str, int]]) -> list[FileArray]:
        """The four files, each with its checksums, if there are any."""
        counts = [block_count(size * np.dtype(dtype).itemsize) for dtype, size in sizes]
        sums = self._sums(sum(counts)) if self.manifest.digest else None
        self._checksums = b"" if sums is None else sums.tobytes()
        ends = np.cumsum(counts).tolist()
        return [FileArray(self.directory / name, dtype, size, None if sums is None else sums[end - count : end])
                for name, (dtype, size), count, end in zip(ARRAYS, sizes, counts, ends, strict=True)]

    def _sums(self, count: int) -> npt.NDArray[np.uint32]:
        file = FileArray(self.directory / SUMS, "<u4", count, None)
        sums: npt.NDArray[np.uint32] = file[:]
        if self.manifest.digest_with(sums.tobytes()) != self.manifest.digest:
            raise CorpusError(f"{self.directory} is damaged: its {MANIFEST} or {SUMS} has changed since the corpus was "
                              "prepared; prepare the corpus again.")
        return sums

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that the corpus was prepared with."""
        if self._tokenizer is None:
            tokenizer = load_tokenizer(self.directory)
            self.require_vocabulary(tokenizer)
            self._tokenizer = tokenizer
        return self._tokenizer

    def require_vocabulary(self, tokenizer: Tokenizer) -> None:
        """Refuse a tokenizer other than the one the corpus was prepared with."""
        if tokenizer.vocabulary.digest() != self.manifest.vocab_digest:
            raise CorpusError(f"{self.directory} was prepared with another vocabulary, of {self.manifest.vocab_size} "
                              f"pieces, not the tokenizer's {len(tokenizer)}; prepare it again with this tokenizer.")
        for name in ("lowercase", "strip_accents"):
            made, given = getattr(self.manifest, name), getattr(tokenizer, name)
            if made is not None and made != given:
                raise CorpusError(f"{self.directory} was prepared with {name}={made}, but the tokenizer has "
                                  f"{name}={given}; prepare it again with this tokenizer.")

    def split(self, name: str) -> npt.NDArray[np.int64]:
        """The numbers of the documents in a split, `train` or `heldout`."""
        if name not in SPLITS:
            raise CorpusError(f"There is no split {name!r}; choose one of {', '.join(SPLITS)}.")
        return np.flatnonzero(np.asarray(self.splits) == SPLITS.index(name))

    def token_chunks(self, split: str, longest: int = 1 << 20) -> Iterator[npt.NDArray[np.int64]]:
        """The tokens of a split in chunks of adjacent documents, each of about `longest` tokens at most."""
        bounds = self.sentences[self.documents].astype(np.int64)
        start = stop = 0
        for document in self.split(split).tolist():
            if bounds[document] != stop or stop - start >= longest:
                if stop > start:
                    yield self.tokens[start:stop].astype(np.int64)
                start = int(bounds[document])
            stop = int(bounds[document + 1])
        if stop > start:
            yield self.tokens[start:stop].astype(np.int64)

    def has_words(self, split: str) -> bool:
        """Does the split have tokens that can be masked, not only special ones such as [UNK]?"""
        ordinary = self.tokenizer.vocabulary.ordinary
        return any(bool(ordinary[tokens].any()) for tokens in self.token_chunks(split))

    def piece_counts(self) -> npt.NDArray[np.int64]:
        """How often each id occurs in the whole corpus, both splits."""
        counts = np.zeros(self.manifest.vocab_size, np.int64)
        for start in range(0, self.manifest.tokens, 1 << 17):
            found = np.bincount(self.tokens[start : start + (1 << 17)], minlength=len(counts))
            if len(found) > len(counts):
                raise CorpusError(f"{self.directory / 'tokens.bin'} is damaged: it has the id {len(found) - 1}, but "
                                  f"the vocabulary has {len(counts)} pieces; prepare the corpus again.")
            counts += found
        return counts

    def fingerprint(self) -> str:
        """A digest of the content, wherever the text lay. Up to 2 GB of a file are verified now, the rest when read."""
        return self._fingerprint(replace(self.manifest, sources=[], skipped={}, digest=""))

    def matches(self, fingerprint: object) -> bool:
        """Is it the fingerprint of this corpus? Older ones depend on the paths of the sources too."""
        return fingerprint == self.fingerprint() or fingerprint == self._fingerprint(self.manifest)

    def _fingerprint(self, manifest: Manifest) -> str:
        digest = blake2b(manifest.to_json().encode(), digest_size=16)
        if self.manifest.digest:                          # then checksums stand for the content of all files
            for file in (self.tokens, self.sentences):
                if file.nbytes <= _WHOLE:
                    file.verify()
            if not manifest.digest:                       # which stands for the checksums
                digest.update(self._checksums)
            return digest.hexdigest()
        for array in (self.tokens, self.sentences, self.documents, self.splits):
            blocks = range(0, len(array), _BLOCK)
            for start in blocks if array.nbytes <= _WHOLE else blocks[:: len(blocks) // _SAMPLES]:
                digest.update(np.ascontiguousarray(array[start : start + _BLOCK]).data)
        return digest.hexdigest()

    def document(self, number: int) -> npt.NDArray[Any]:
        """The tokens of one document."""
        first, last = self.sentences[self.documents[number]], self.sentences[self.documents[number + 1]]
        tokens: npt.NDArray[Any] = self.tokens[int(first) : int(last)]
        return tokens

    def document_sentences(self, number: int) -> Iterator[npt.NDArray[Any]]:
        """The sentences of one document."""
        bounds = self.sentences[int(self.documents[number]) : int(self.documents[number + 1]) + 1]
        for start, end in pairwise(bounds.tolist()):
            yield self.tokens[start:end]


def _read_manifest(directory: Path) -> Manifest:
    path = directory / MANIFEST
    content = read_json(path, CorpusError, absent=f"{directory} is not a prepared corpus: it has no {MANIFEST}.")
    if content.get("format_version") != VERSION:
        raise CorpusError(f"{path} does not have the format version {VERSION}; prepare the corpus again.")
    try:
        manifest = Manifest(**content)
    except TypeError:
        raise CorpusError(f"{path} has unknown keys; prepare the corpus again.") from None
    for field_ in fields(Manifest):
        value = getattr(manifest, field_.name)
        if not _KINDS[field_.type](value):
            raise CorpusError(f"{path} is damaged: its {field_.name} is {str(value)[:100]}; prepare the corpus again.")
    if manifest.dtype not in ("uint16", "uint32"):
        raise CorpusError(f"{path} is damaged: its dtype is {manifest.dtype[:100]}; prepare the corpus again.")
    return manifest


_KINDS: dict[Any, Callable[[Any], bool]] = {          # by the annotations of Manifest
    int: lambda value: type(value) is int and 0 <= value < 1 << 60,
    str: lambda value: isinstance(value, str),
    str | None: lambda value: value is None or isinstance(value, str),
    bool | None: lambda value: value is None or isinstance(value, bool),
    list[str]: lambda value: isinstance(value, list) and all(isinstance(name, str) for name in value),
    dict[str, Any]: lambda value: isinstance(value, dict),
    dict[str, str]: lambda value: isinstance(value, dict) and all(isinstance(text, str) for text in value.values()),
}
