"""The kinds of tokenizers, and `load_tokenizer`, which finds the right one for a directory.

Each kind says which files are its own (`Tokenizer.claims`); the first that claims a directory reads it.
"""

from difflib import get_close_matches
from importlib import import_module
from os import PathLike
from pathlib import Path

from ..errors import VocabularyError
from .tokenizer import Tokenizer
from .tokenizer_files import TokenizerFiles

_BUILT_IN = {"byte_bpe": "byte_bpe.tokenizer:ByteBPETokenizer",                # kind -> the module and class
             "unigram": "unigram.tokenizer:UnigramTokenizer",
             "wordpiece": "wordpiece.tokenizer:WordPieceTokenizer"}                # last: it takes any bare file
_OTHERS: dict[str, type[Tokenizer]] = {}


def register_tokenizer(made: type[Tokenizer]) -> type[Tokenizer]:
    """Make a kind of tokenizer known; decorates a class in a user's own file."""
    if made.kind in _BUILT_IN or _OTHERS.get(made.kind, made).__module__ != made.__module__:
        raise VocabularyError(f"There is a tokenizer of the kind {made.kind!r} already; choose another word.")
    _OTHERS[made.kind] = made
    return made


def kinds() -> dict[str, type[Tokenizer]]:
    """Every kind by its word."""
    found: dict[str, type[Tokenizer]] = {}
    for word, place in _BUILT_IN.items():
        module, name = place.split(":")
        found[word] = getattr(import_module(f".{module}", __package__), name)
    return found | _OTHERS


def tokenizer_kind(word: str) -> type[Tokenizer]:
    """The kind of this name."""
    known = kinds()
    if word not in known:
        near = get_close_matches(word[:100], known, n=1, cutoff=0.0)[0]
        raise VocabularyError(f"There is no kind of tokenizer {word[:100]!r}; the nearest is {near!r}, and all are "
                              f"{', '.join(known)}.")
    return known[word]


def tokenizer_file_names() -> frozenset[str]:
    """The names of the files that tokenizers write."""
    return frozenset().union(*(kind.files for kind in kinds().values()))


def load_tokenizer(path: str | PathLike[str], *, lowercase: bool | None = None) -> Tokenizer:
    """The tokenizer of a shipped model, of a directory, ours or Hugging Face's, or of a bare vocabulary file.

    `lowercase` is needed only if no file next to a WordPiece vocabulary says whether it is cased, and must not
    contradict such a file.
    """
    files = TokenizerFiles.at(path)
    for kind in kinds().values():
        if kind.claims(files):
            return kind.read(files, lowercase)
    known = ", ".join(kinds())
    if files.algorithm is not None:
        raise VocabularyError(f"{files.directory}: tokenizer.json has a model of the type {files.algorithm[:60]!r}, "
                              f"with parts that no kind of tokenizer here reads; the kinds are {known}.")
    raise VocabularyError(f"{files.directory} is not the directory of a tokenizer: it has none of "
                          f"{', '.join(sorted(tokenizer_file_names()))}.")


def has_tokenizer(path: str | PathLike[str]) -> bool:
    """Are there files of a tokenizer?"""
    files = TokenizerFiles.at(path)
    return any(kind.claims(files) for kind in kinds().values())


def require_free(directory: Path, overwrite: bool) -> None:
    """Refuse a directory that is not empty; with `overwrite` it may contain a tokenizer."""
    names = {file.name for file in directory.iterdir()} if directory.is_dir() else set()
    if names and not overwrite:
        raise VocabularyError(f"{directory} already exists and is not empty; choose another directory, "
                              "or replace a tokenizer with --overwrite.")
    if others := sorted(names - tokenizer_file_names()):
        raise VocabularyError(f"{directory} has files that are not a tokenizer's, such as {others[0]}, and is not "
                              "overwritten; choose another directory.")
