"""What must be alike on all hosts for the same bits, and what is said where it is not.

The order of all sums is fixed, but a matrix product is the BLAS library's: another version, or kernels for another
processor, round differently. Such a run is right and can be resumed; it only is not the same run to the last bit.
"""

import os
import platform
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_info

if TYPE_CHECKING:
    from .mpi import OverMPI


def kernels() -> dict[str, str]:
    """What the bits of a step depend on, besides this package."""
    blas = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    found = {"NumPy": np.__version__, "machine": platform.machine(), "Python": platform.python_version()}
    for pool in blas[:1]:
        found |= {"BLAS": f"{pool['internal_api']} {pool['version']}", "BLAS kernels": str(pool.get("architecture"))}
    with suppress(ImportError, AttributeError):       # it moves from version to version
        features = import_module("numpy._core._multiarray_umath").__cpu_features__
        found["NumPy's SIMD"] = " ".join(sorted(name for name, has in features.items() if has))
    return found


def differences(processes: "OverMPI") -> Iterator[str]:
    """A sentence for each thing that is not alike everywhere."""
    found = processes.share(kernels())
    for what in found[0]:
        values = [one.get(what, "none") for one in found]
        most = Counter(values).most_common(1)[0][0]
        for rank, value in enumerate(values):
            if value != most:
                yield (f"{processes.name(rank)} has another {what} than most: {_short(value, most)}; the result may "
                       "differ in its last bits from that of other machines.")


def _short(value: str, most: str) -> str:
    """Two values, or of long lists what one has and the other has not."""
    if " " not in value + most or len(value + most) < 80:
        return f"{value}, not {most}"
    only, missing = (sorted(set(a.split()) - set(b.split())) for a, b in ((value, most), (most, value)))
    return ", ".join([*(f"+{name}" for name in only), *(f"-{name}" for name in missing)])


def local_share(processes: "OverMPI") -> int:
    """Among how many processes of this host this one's cores are divided; 1 if they are its own already."""
    cores = frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else frozenset[int]()
    found = processes.share(cores)
    here = processes.hosts[processes.rank]
    return sum(theirs == cores for host, theirs in zip(processes.hosts, found, strict=True) if host == here)
