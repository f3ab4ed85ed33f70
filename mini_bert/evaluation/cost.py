"""What a result cost: the seconds that it took, and the memory of the process at its peak."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

from ..training.process_memory import peak_resident_bytes


def with_cost(compute: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    """`compute`, with what it cost in its result; a result that is remembered keeps the cost of its computation."""
    def measured() -> dict[str, Any]:
        start = perf_counter()
        found = compute()
        return {**found, "cost": {"seconds": round(perf_counter() - start, 1),
                                  "peak_mb": round(peak_resident_bytes() / 1e6, 1)}}

    return measured
