"""A cache of chunks of text and their ids. Natural text repeats itself, so most chunks take one look-up."""

import sys
from abc import ABC, abstractmethod

from .tokenizer import ID

_CACHED = 5 << 15             # chunks per generation: about 20 MB
_LONGEST = 100                # characters; longer chunks, of text without spaces, will not repeat


class ChunkCache(dict[str, bytes], ABC):
    """Chunk -> ids, as the bytes of an array, so that one `b"".join` gives the ids of a text.

    A full cache becomes the old generation, and a new one starts; chunks of the old generation are copied on use.
    """

    def __init__(self) -> None:
        super().__init__()
        self.old_generation: dict[str, bytes] = {}

    @abstractmethod
    def find(self, chunk: str) -> bytes:
        """The ids of a chunk that is not in the cache."""

    def __missing__(self, chunk: str) -> bytes:
        ids = self.old_generation.get(chunk)
        if ids is None:
            ids = self.find(chunk)
        if len(chunk) <= _LONGEST:
            self.make_room()
            self[chunk] = ids
        return ids

    def make_room(self) -> None:
        """Start a new generation if this one is full."""
        if len(self) >= _CACHED:
            self.old_generation = dict(self)
            self.clear()


def as_bytes(number: int) -> bytes:
    """One id as the bytes of an array."""
    return number.to_bytes(ID.itemsize, sys.byteorder)
