"""The memory of this process, as the system counts it."""

import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")


def resident_bytes() -> int:
    """What is in memory now; 0 where the system does not say."""
    return _read("VmRSS")


def peak_resident_bytes() -> int:
    """The most there has been since the process began; 0 where the system does not say."""
    if _STATUS.exists():
        return _read("VmHWM")
    try:
        import resource
    except ImportError:                   # Windows has none
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _read(key: str) -> int:
    try:
        line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(key))
    except (OSError, StopIteration):
        return 0
    return int(line.split()[1]) * 1024
