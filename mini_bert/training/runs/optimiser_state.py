"""An optimiser's state in a checkpoint: of all parameters, in one file, however many processes divide it.

So a run can go on with another number of processes. Only the first process reads and writes.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ...core.arrays import Array
from ...parallel.processes import collect, first_only, hand_out
from ..optimisers.optimiser import Optimiser
from .checkpoints import read_arrays


def whole_state(optimiser: Optimiser) -> Mapping[str, Array]:
    """The state arrays for all parameters, in the first process; in others there are none."""
    if optimiser.processes.size == 1:
        return optimiser.state
    parts = {name: list(collect(optimiser.processes, array, optimiser.shards))
             for name, array in optimiser.state.items()}
    return {name: np.concatenate(several) for name, several in parts.items()} if optimiser.processes.rank == 0 else {}


def restore_state(optimiser: Optimiser, file: Path, steps: int) -> None:
    """Give each process the state of its own shard, from the file of a checkpoint behind this number of steps."""
    processes, state = optimiser.processes, optimiser.state
    whole = {name: np.broadcast_to(np.zeros(1, array.dtype), optimiser.params.flat.shape)       # for their shapes
             for name, array in state.items()}
    found = first_only(processes, lambda: read_arrays(file, whole))
    for name, array in state.items():
        hand_out(processes, (found[name][shard] for shard in optimiser.shards) if found else iter(()), array)
    optimiser.restore(dict(state), steps)
