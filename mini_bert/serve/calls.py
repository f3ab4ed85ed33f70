"""One request on its way: its fields, the wait for a model, and what the log says of it."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, TypeVar

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive

from ..core.arrays import Array
from ..errors import MiniBertError
from ..inference.embed import unit_length
from .collection import ServedCollection
from .limits import Limits
from .metrics import Metrics
from .models import Ids, Models, ServedModel, TooLargeError, Vectors

T = TypeVar("T")
_MANY = 20_000                # characters whose tokens are not looked for between other requests


class LeftError(MiniBertError):
    """The client has gone."""


class LateError(MiniBertError):
    """A wait was too long."""


@dataclass
class Service:
    """What all requests share."""

    models: Models
    limits: Limits
    metrics: Metrics
    collection: ServedCollection | None = None
    stopping: bool = False
    began: int = 0                        # seconds since 1970
    receiving: int = 0                    # bytes of bodies that are held


@dataclass
class Call:
    """A request whose body has been read."""

    service: Service
    given: Mapping[str, Any]              # its fields, or the parameters of its address
    receive: Receive
    begun: float = field(default_factory=monotonic)
    model: str | None = None
    tokens: int = 0
    cached: int = 0

    def find(self, able: Callable[[ServedModel], Any] = lambda model: True) -> ServedModel:
        """The model that is asked for."""
        found = self.service.models.find(self.given.get("model"), able)
        self.model = found.name
        return found

    def require_few(self, count: int) -> None:
        """Refuse more texts than a request may have."""
        most = self.service.limits.inputs
        if count > most:
            raise TooLargeError(f"The request has {count:,} texts; at most {most:,} are allowed. Send it in parts.")

    def require_little(self, work: int, what: str) -> None:
        """Refuse what takes far more work than its tokens tell; `work` is in tokens, and 16 are allowed for each."""
        most = 16 * self.service.limits.tokens
        if work > most:
            raise TooLargeError(f"{what}, of at most {most:,}.")

    async def computed(self, future: "Future[T]") -> T:
        """The answer of a model's thread. The job is cancelled if the client leaves or the time is up."""
        waiting = asyncio.wrap_future(future)
        gone = asyncio.ensure_future(self._gone())
        both: set[asyncio.Future[Any]] = {waiting, gone}
        left = self.begun + self.service.limits.answer - monotonic()
        try:
            await asyncio.wait(both, timeout=max(left, 0), return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                return waiting.result()
            if gone.done():
                raise LeftError("The client has gone.")
            raise LateError(f"The answer took longer than {self.service.limits.answer:g} seconds.")
        finally:
            gone.cancel()
            waiting.cancel()

    async def _gone(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass

    # ---------------------------------------------------------------- what several addresses need

    async def ids(self, model: ServedModel, inputs: Sequence[str | Ids], **how: Any) -> list[Ids]:
        """Tokens of texts; where they are many, other requests are answered meanwhile."""
        self.require_few(len(inputs))
        if sum(map(len, inputs)) > _MANY:
            rows = await run_in_threadpool(lambda: model.ids(inputs, **how))
        else:
            rows = model.ids(inputs, **how)
        self.tokens += model.tokens(rows)
        return rows

    async def count(self, model: ServedModel, texts: Sequence[str]) -> int:
        """The tokens of texts that a method of the pipeline will read."""
        before = self.tokens
        await self.ids(model, texts)
        return self.tokens - before

    async def vectors(self, model: ServedModel, inputs: Sequence[str | Ids], *, normalise: bool = True,
                      **how: Any) -> Vectors:
        """The vectors (N, H) of texts."""
        keys, known, future = model.vectors(await self.ids(model, inputs, **how))
        made: Iterator[Array] = iter(())
        if future is not None:
            computed = await self.computed(future)
            made = iter(computed)
        found = np.empty((len(keys), model.width), np.float32)
        for row, (key, vector) in enumerate(zip(keys, known, strict=True)):
            if vector is None:
                vector = next(made)
                model.cache.put(key, vector)
            else:
                self.cached += 1
            found[row] = vector
        return unit_length(found) if normalise else found


def numbers(values: Any) -> Any:
    """An array as lists, to nine decimals, which is more than float32 has of a unit vector."""
    return np.round(np.asarray(values, np.float64), 9).tolist()
