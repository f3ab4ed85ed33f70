"""The cost of a result: seconds, and the peak memory of the process."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

from ..training.runs.process_memory import peak_resident_bytes


def with_cost(compute: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    """Wrap `compute` to add its cost to the result; a cached result keeps the cost of the original computation."""
    def measured() -> dict[str, Any]:
        start = perf_counter()
        found = compute()
        return {**found, "cost": {"seconds": round(perf_counter() - start, 1),
                                  "peak_mb": round(peak_resident_bytes() / 1e6, 1)}}

    return measured
