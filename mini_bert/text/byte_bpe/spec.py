"""What defines a byte-level BPE tokenizer: pieces, merges, added tokens, the template, and settings."""

from dataclasses import dataclass

from ..pipeline.added_tokens import AddedToken
from ..template import Template
from ..vocabulary import Vocabulary
from .alphabet import SPACE

VOCAB, MERGES = "vocab.json", "merges.txt"


@dataclass(frozen=True)
class Settings:
    """What a tokenizer.json may set."""

    add_prefix_space: bool = False        # the first word gets a space, like any other
    trim_offsets: bool = False            # the characters of a token leave out the space before it
    keep_prefix: bool = True              # with trim_offsets: but not at the beginning, where the space was added
    nfc: bool = False                     # letters and marks are composed first
    unk: str | None = None                # for bytes that the vocabulary lacks; without it they are left out
    ignore_merges: bool = False           # a word that is a piece is that piece, whatever merging gives


@dataclass(frozen=True)
class ByteBPESpec:
    """What defines a tokenizer."""

    vocabulary: Vocabulary
    merges: tuple[tuple[str, str], ...]   # by rank
    added: tuple[AddedToken, ...]
    template: Template
    settings: Settings = Settings()


def continues_word(piece: str) -> bool:
    """Has the piece no space before it? This is also so of the first word of a text, and of punctuation."""
    return not piece.startswith(SPACE)
