"""Vectors of texts that were asked for lately, the oldest leaving first.

The memory is taken when the cache is made, so that a server needs no more after a day than after a minute. A text is
known by a digest, and its vector is what the model gave for it, before any scaling.
"""

from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from threading import Lock

import numpy as np

from ..core.arrays import Array

_OVERHEAD = 200               # bytes of an entry beside its vector


class VectorCache:
    """At most `size` bytes of vectors of `width` numbers; with a size of 0 nothing is kept."""

    def __init__(self, size: int, width: int):
        self._rows = np.empty((size // (4 * width + _OVERHEAD), width), np.float32)
        self._rows.fill(0)                        # take the memory now
        self._places: OrderedDict[bytes, int] = OrderedDict()
        self._lock = Lock()
        self.hits = self.misses = 0

    def __len__(self) -> int:
        return len(self._places)

    @staticmethod
    def key(ids: Sequence[int]) -> bytes:
        """Of a text, by its ids."""
        return blake2b(np.asarray(ids, np.uint32).tobytes(), digest_size=16).digest()

    def get(self, key: bytes) -> Array | None:
        """A copy of the vector that is kept for a text."""
        with self._lock:
            place = self._places.get(key)
            if place is None:
                self.misses += 1
                return None
            self.hits += 1
            self._places.move_to_end(key)
            found: Array = self._rows[place].copy()
            return found

    def put(self, key: bytes, vector: Array) -> None:
        with self._lock:
            if not len(self._rows):
                return
            place = self._places.pop(key, None)
            if place is None:
                place = len(self._places) if len(self._places) < len(self._rows) else self._places.popitem(False)[1]
            self._rows[place] = vector
            self._places[key] = place
