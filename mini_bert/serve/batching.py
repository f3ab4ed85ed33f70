"""The queue before a model: a thread takes the requests that have come meanwhile, and computes them together.

A request that finds the thread idle waits a moment (`window`) for others. While the thread computes, requests gather,
so the batches grow with the load and no request waits for a full batch. Only jobs of one kind are joined, the oldest
first, up to a number of tokens; a job that nobody waits for any more is left out. The queue is bounded: what does not
fit is refused at once, with the seconds after which to come again.
"""

import logging
from collections import deque
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from threading import Condition, Thread
from time import monotonic
from typing import Any, NamedTuple

from ..errors import MiniBertError
from .limits import Limits

_log = logging.getLogger(__name__)
Run = Callable[[str, Sequence[Any]], Sequence[Any]]


class BusyError(MiniBertError):
    """The queue is full."""

    def __init__(self, seconds: int):
        super().__init__(f"Too many requests are waiting; try again in {seconds} second{'s' if seconds > 1 else ''}.")
        self.seconds = seconds


class StoppedError(MiniBertError):
    """The server is stopping."""


class _Job(NamedTuple):
    kind: str
    given: Any
    tokens: int
    answer: "Future[Any]"
    since: float


class Done(NamedTuple):
    """What a batch was, for the metrics."""

    jobs: int
    tokens: int
    seconds: float


class Batcher:
    """Runs jobs in a thread of its own: `run(kind, given)` gets those of a batch and returns an answer for each.

    Jobs of the kinds in `joined` share a batch; others come one by one. `told` hears of every batch.
    """

    def __init__(self, name: str, run: Run, limits: Limits, *, joined: Collection[str] = (),
                 told: Callable[[Done], None] = lambda done: None):
        self.name, self._run, self._limits, self._joined, self._told = name, run, limits, frozenset(joined), told
        self._waiting: deque[_Job] = deque()
        self._tokens = 0                          # of the waiting jobs
        self._rate = 0.0                          # tokens a second, lately
        self._changed = Condition()
        self._closed = False
        self._thread = Thread(target=self._work, name=f"mini-bert serve {name}", daemon=True)
        self._thread.start()

    @property
    def depth(self) -> tuple[int, int]:
        """The requests that wait, and their tokens."""
        return len(self._waiting), self._tokens

    def submit(self, kind: str, given: Any, tokens: int) -> "Future[Any]":
        """The answer to come. Cancel it when nobody waits for it any more."""
        with self._changed:
            if self._closed:
                raise StoppedError("The server is stopping.")
            full = len(self._waiting) >= self._limits.queue
            if full or (self._waiting and self._tokens + tokens > self._limits.queue_tokens):
                raise BusyError(self._seconds_to_wait())
            job = _Job(kind, given, tokens, Future(), monotonic())
            self._waiting.append(job)
            self._tokens += tokens
            self._changed.notify()
        return job.answer

    def close(self) -> None:
        """Take no more jobs, and return when those in the queue are done."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _seconds_to_wait(self) -> int:
        return max(1, min(60, round(self._tokens / self._rate))) if self._rate else 1

    # ---------------------------------------------------------------- the thread

    def _work(self) -> None:
        while (batch := self._next()) is not None:
            wanted = [job for job in batch if job.answer.set_running_or_notify_cancel()]
            if wanted:
                self._compute(wanted)

    def _next(self) -> list[_Job] | None:
        """The next batch, or None when the queue is closed and empty."""
        with self._changed:
            while not self._waiting and not self._closed:
                self._changed.wait()
            if not self._waiting:
                return None
            first = self._waiting[0]
            end = first.since + (self._limits.window if first.kind in self._joined else 0)
            while self._tokens < self._limits.batch_tokens and not self._closed and (left := end - monotonic()) > 0:
                self._changed.wait(left)
            batch = self._taken(first)
            self._tokens -= sum(job.tokens for job in batch)
            return batch

    def _taken(self, first: _Job) -> list[_Job]:
        """The first job, and those of its kind that fit beside it; the others keep their order."""
        self._waiting.popleft()
        batch, room, kept = [first], self._limits.batch_tokens - first.tokens, deque[_Job]()
        while self._waiting and first.kind in self._joined and room > 0:
            job = self._waiting.popleft()
            if job.kind == first.kind and (job.tokens <= room or job.answer.cancelled()):
                batch.append(job)
                room -= 0 if job.answer.cancelled() else job.tokens
            else:
                kept.append(job)
                if job.kind == first.kind:        # no younger one overtakes it
                    break
        self._waiting.extendleft(reversed(kept))
        return batch

    def _compute(self, jobs: list[_Job]) -> None:
        begin = monotonic()
        try:
            answers = self._run(jobs[0].kind, [job.given for job in jobs])
        except BaseException as error:
            if len(jobs) > 1:                     # one of them may be at fault
                for job in jobs:
                    self._compute([job])
                return
            if not isinstance(error, MiniBertError):
                _log.exception("%s failed at a request.", self.name)
            jobs[0].answer.set_exception(error)
            return
        finally:
            seconds = max(monotonic() - begin, 1e-6)
        tokens = sum(job.tokens for job in jobs)
        self._rate = tokens / seconds if not self._rate else 0.9 * self._rate + 0.1 * tokens / seconds
        self._told(Done(len(jobs), tokens, seconds))
        for job, answer in zip(jobs, answers, strict=True):
            job.answer.set_result(answer)
