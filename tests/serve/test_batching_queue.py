"""The queue before a model: what is computed together, in which order, and what when something fails."""

from concurrent.futures import CancelledError
from threading import Event

import numpy as np
import pytest

from mini_bert.errors import ConfigError, InputError
from mini_bert.serve.batching import Batcher, BusyError, StoppedError
from mini_bert.serve.limits import Limits
from mini_bert.serve.vector_cache import VectorCache


class Recorder:
    """Answers with what it is given, and remembers the batches. The first waits until it is released."""

    def __init__(self):
        self.batches, self.begun, self.go = [], Event(), Event()

    def __call__(self, kind, given):
        if kind == "hold":
            self.begun.set()
            self.go.wait(10)
            return list(given)
        self.batches.append((kind, list(given)))
        if "bad" in given:
            raise InputError("One is bad.")
        return [f"{one}!" for one in given]


def held(limits):
    run = Recorder()
    batcher = Batcher("test", run, limits, joined=("a", "b"))
    batcher.submit("hold", 0, 1)
    run.begun.wait(10)
    return run, batcher


def test_what_waits_is_computed_together_kind_by_kind_oldest_first():
    run, batcher = held(Limits(window=0, batch_tokens=10))
    jobs = [batcher.submit(kind, name, 4) for kind, name in zip("aabaab", "123456", strict=True)]
    jobs.append(batcher.submit("c", "7", 4))
    run.go.set()
    assert [job.result(10) for job in jobs] == [f"{i}!" for i in range(1, 8)]
    assert run.batches == [("a", ["1", "2"]), ("b", ["3", "6"]), ("a", ["4", "5"]), ("c", ["7"])]
    batcher.close()


def test_a_job_larger_than_a_batch_comes_alone_and_none_of_its_kind_overtakes_it():
    run, batcher = held(Limits(window=0, batch_tokens=10))
    jobs = [batcher.submit("a", name, tokens) for name, tokens in (("1", 3), ("2", 50), ("3", 3))]
    run.go.set()
    assert [job.result(10) for job in jobs] == ["1!", "2!", "3!"]
    assert run.batches == [("a", ["1"]), ("a", ["2"]), ("a", ["3"])]
    batcher.close()


def test_a_bad_job_does_not_spoil_the_others_of_its_batch():
    run, batcher = held(Limits(window=0))
    jobs = [batcher.submit("a", name, 1) for name in ("1", "bad", "3")]
    run.go.set()
    assert (jobs[0].result(10), jobs[2].result(10)) == ("1!", "3!")
    with pytest.raises(InputError, match="bad"):
        jobs[1].result(10)
    batcher.close()


def test_a_cancelled_job_is_not_computed():
    run, batcher = held(Limits(window=0))
    jobs = [batcher.submit("a", name, 1) for name in "123"]
    assert jobs[1].cancel()
    run.go.set()
    batcher.close()
    assert run.batches == [("a", ["1", "3"])]
    with pytest.raises(CancelledError):
        jobs[1].result(0)


def test_the_queue_is_bounded_by_requests_and_by_tokens():
    run, batcher = held(Limits(window=0, queue=2, queue_tokens=100))
    batcher.submit("a", "1", 90)
    with pytest.raises(BusyError, match="1 second") as refused:
        batcher.submit("a", "2", 20)
    assert refused.value.seconds == 1
    batcher.submit("a", "2", 5)
    with pytest.raises(BusyError):
        batcher.submit("a", "3", 1)
    assert batcher.depth == (2, 95)
    run.go.set()
    batcher.close()
    assert batcher.depth == (0, 0)


def test_closing_computes_what_was_accepted_and_refuses_the_rest():
    run, batcher = held(Limits(window=60))
    jobs = [batcher.submit("a", name, 1) for name in "12"]
    run.go.set()
    batcher.close()
    assert [job.result(0) for job in jobs] == ["1!", "2!"]
    with pytest.raises(StoppedError):
        batcher.submit("a", "3", 1)


def test_the_cache_forgets_the_oldest_and_takes_its_memory_at_once():
    cache = VectorCache(3 * (4 * 4 + 200), 4)
    rows = np.arange(16, dtype=np.float32).reshape(4, 4)
    keys = [VectorCache.key([i]) for i in range(4)]
    for i in range(3):
        cache.put(keys[i], rows[i])
    assert cache.get(keys[0]).tolist() == rows[0].tolist()
    cache.put(keys[3], rows[3])                   # in place of the second, which was used least lately
    assert cache.get(keys[1]) is None
    assert [cache.get(keys[i]).tolist() for i in (0, 2, 3)] == [rows[i].tolist() for i in (0, 2, 3)]
    assert len(cache) == 3
    found = cache.get(keys[0])
    found += 1                                    # a copy
    assert cache.get(keys[0]).tolist() == rows[0].tolist()


def test_a_cache_of_no_size_keeps_nothing():
    cache = VectorCache(0, 4)
    cache.put(b"key", np.ones(4, np.float32))
    assert cache.get(b"key") is None


def test_a_limit_that_is_none_is_refused():
    with pytest.raises(ConfigError, match="queue"):
        Limits(queue=0)
