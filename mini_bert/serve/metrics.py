"""Counters of a server, as the text that Prometheus reads at /metrics.

Nothing that a client can choose becomes a label: an address that is not in the table of routes counts as `other`.
"""

import os
import sys
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from threading import Lock

Labels = tuple[tuple[str, str], ...]
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_TOKENS = (16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0)
_HELP = {
    "requests_total": ("counter", "Requests by address and status."),
    "request_seconds": ("histogram", "Time from the head of a request to the end of its answer."),
    "input_tokens_total": ("counter", "Tokens of accepted requests."),
    "batch_seconds": ("histogram", "Time of computing a batch."),
    "batch_tokens": ("histogram", "Tokens of a batch."),
    "batch_requests_total": ("counter", "Requests that were computed in batches."),
    "cache_total": ("counter", "Vectors looked up in the cache, by result."),
    "cache_vectors": ("gauge", "Vectors in the cache."),
    "queue_requests": ("gauge", "Requests that wait for a model."),
    "queue_tokens": ("gauge", "Tokens of the requests that wait."),
    "connections": ("gauge", "Open connections."),
}
_BUCKETS = {"request_seconds": _SECONDS, "batch_seconds": _SECONDS, "batch_tokens": _TOKENS}


class Metrics:
    """Counts and distributions, from any thread; `gauges` are asked when the page is."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, Labels]] = Counter()
        self._spread: dict[tuple[str, Labels], list[float]] = {}      # a count for each bucket, then the sum
        self._lock = Lock()
        self.gauges: list[Callable[[], Iterable[tuple[str, Mapping[str, str], float]]]] = []

    def count(self, name: str, by: float = 1, **labels: str) -> None:
        with self._lock:
            self._counts[name, tuple(sorted(labels.items()))] += by       # type: ignore[assignment]

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Add a value to a distribution."""
        bounds, key = _BUCKETS[name], (name, tuple(sorted(labels.items())))
        with self._lock:
            counts = self._spread.setdefault(key, [0.0] * (len(bounds) + 2))
            counts[bisect_left(bounds, value)] += 1
            counts[-1] += value

    def text(self) -> str:
        """In Prometheus' text format, version 0.0.4."""
        with self._lock:
            plain = [(name, labels, float(value)) for (name, labels), value in self._counts.items()]
            spread = [(name, labels, list(counts)) for (name, labels), counts in self._spread.items()]
        plain += [(name, tuple(sorted(labels.items())), value) for gauge in self.gauges
                  for name, labels, value in gauge()]
        lines = []
        for name, (kind, about) in _HELP.items():
            lines += [f"# HELP minibert_{name} {about}", f"# TYPE minibert_{name} {kind}"]
            lines += [f"minibert_{name}{_braced(labels)} {_number(value)}"
                      for found, labels, value in sorted(plain) if found == name]
            for found, labels, counts in sorted(spread):
                if found == name:
                    lines += _histogram(name, labels, counts, _BUCKETS[name])
        return "\n".join([*lines, *_of_process(), ""])


def _histogram(name: str, labels: Labels, counts: Sequence[float], bounds: Sequence[float]) -> list[str]:
    lines, total = [], 0.0
    for bound, count in zip([*map(_number, bounds), "+Inf"], counts[:-1], strict=True):
        total += count
        lines.append(f"minibert_{name}_bucket{_braced((*labels, ('le', bound)))} {_number(total)}")
    return [*lines, f"minibert_{name}_sum{_braced(labels)} {_number(counts[-1])}",
            f"minibert_{name}_count{_braced(labels)} {_number(total)}"]


def _braced(labels: Labels) -> str:
    escaped = [f'{key}="{_escaped(value)}"' for key, value in labels]
    return f"{{{','.join(escaped)}}}" if escaped else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


_STARTED = time.time()


def resident_bytes() -> int:
    """The memory of this process; 0 where the system does not say."""
    if not sys.platform.startswith("linux"):
        return 0
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGESIZE")


def _of_process() -> list[str]:
    """By the names that Prometheus' client libraries use."""
    found = [("process_cpu_seconds_total", "counter", time.process_time()),
             ("process_start_time_seconds", "gauge", _STARTED)]
    if resident := resident_bytes():
        found.append(("process_resident_memory_bytes", "gauge", resident))
    return [line for name, kind, value in found for line in (f"# TYPE {name} {kind}", f"{name} {_number(value)}")]
