"""Deduplication of paragraphs by their fingerprints, in bounded memory."""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path

import numpy as np
import numpy.typing as npt

_IN_MEMORY = 1 << 18          # fingerprints in the set: about 20 MB


class Deduplicator:
    """The set of texts added so far: recent fingerprints in memory, older ones in sorted files in `directory`."""

    def __init__(self, directory: Path):
        self.directory = directory
        self.recent: set[int] = set()
        self.runs: list[npt.NDArray[np.uint64]] = []
        self.files = 0

    def add(self, text: str) -> bool:
        """Add a text; False if it is a duplicate."""
        fingerprint = int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
        if fingerprint in self.recent or any(self._in(run, fingerprint) for run in self.runs):
            return False
        self.recent.add(fingerprint)
        if len(self.recent) >= _IN_MEMORY:
            self._spill()
        return True

    @staticmethod
    def _in(run: npt.NDArray[np.uint64], fingerprint: int) -> bool:
        place = int(np.searchsorted(run, np.uint64(fingerprint)))
        return place < len(run) and int(run[place]) == fingerprint

    def _spill(self) -> None:
        """Move the set into a sorted file, and merge files of equal size, as a binary counter carries."""
        run: npt.NDArray[np.uint64] = np.sort(np.fromiter(self.recent, np.uint64, len(self.recent)))
        self.recent.clear()
        run = self._write([run], len(run))
        while self.runs and len(self.runs[-1]) <= len(run):
            older = self.runs.pop()
            run = self._write(_merged(older, run), len(older) + len(run))
        self.runs.append(run)

    def _write(self, parts: Iterable[npt.NDArray[np.uint64]], size: int) -> npt.NDArray[np.uint64]:
        path = self.directory / f"dedup-{self.files}.bin"
        self.files += 1
        with path.open("wb") as file:
            for part in parts:
                part.tofile(file)
        return np.memmap(path, np.uint64, "r", shape=(size,))


def _merged(a: npt.NDArray[np.uint64], b: npt.NDArray[np.uint64]) -> Iterator[npt.NDArray[np.uint64]]:
    """The merge of two sorted arrays, in parts."""
    while len(a) and len(b):
        x, y = a[:_IN_MEMORY], b[:_IN_MEMORY]
        bound = min(x[-1], y[-1])                 # both arrays are in memory up to here
        take_x, take_y = (int(np.searchsorted(part, bound, "right")) for part in (x, y))
        yield np.sort(np.concatenate([x[:take_x], y[:take_y]]))
        a, b = a[take_x:], b[take_y:]
    for rest in (a, b):
        for start in range(0, len(rest), _IN_MEMORY):
            yield rest[start : start + _IN_MEMORY]
