"""A collection of vectors that a server searches, with the texts that they belong to."""

from array import array
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from tempfile import TemporaryFile
from threading import Lock
from typing import Any

import numpy as np

from ..errors import DataError
from ..inference.collection import Collection, Hit
from ..workers import Workers
from .batching import Batcher
from .limits import Limits
from .models import Vectors


class Texts:
    """Texts by number. They are in a temporary file without a name, so that their memory is bounded."""

    def __init__(self, texts: Iterable[str]):
        self._file = TemporaryFile()              # noqa: SIM115  (it is open as long as this is)
        self._ends = array("Q", [0])
        end = 0
        for text in texts:
            end += self._file.write(text.encode("utf-8", "surrogatepass"))
            self._ends.append(end)
        self._file.flush()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._ends) - 1

    def close(self) -> None:
        self._file.close()

    def __getitem__(self, number: int) -> str:
        start, end = self._ends[number], self._ends[number + 1]
        with self._lock:
            self._file.seek(start)
            return self._file.read(end - start).decode("utf-8", "replace")


class ServedCollection:
    """A collection behind a queue of its own: searches that come together read the file once."""

    def __init__(self, collection: Collection, texts: Texts | None, model: str, team: Workers, limits: Limits):
        if texts is not None and len(texts) != len(collection):
            raise DataError(f"{collection.path} has {len(collection):,} vectors, and there are {len(texts):,} texts; "
                            "give the file that the vectors were made from.")
        self.collection, self.texts, self.model, self._team = collection, texts, model, team
        self.batcher = Batcher("collection", self._run, limits, joined=("search",))

    def close(self) -> None:
        self.batcher.close()
        if self.texts is not None:
            self.texts.close()

    def search(self, queries: Vectors, top: int) -> "Future[list[list[Hit]]]":
        return self.batcher.submit("search", (queries, top), len(queries))

    def _run(self, kind: str, given: Sequence[Any]) -> Sequence[Any]:
        found = self.collection.search(np.concatenate([queries for queries, _ in given]), max(top for _, top in given),
                                       self._team)
        hits = iter(found)
        return [[next(hits)[:top] for _ in queries] for queries, top in given]

    def text(self, number: int) -> str | None:
        return None if self.texts is None else self.texts[number]

    def about(self) -> dict[str, Any]:
        return {"file": self.collection.path.name, "vectors": len(self.collection),
                "dimensions": self.collection.width, "model": self.model, "texts": self.texts is not None}
