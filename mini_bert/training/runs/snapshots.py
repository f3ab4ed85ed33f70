"""Snapshots: light copies of the model over a whole run, from which its learning can be followed afterwards.

    snapshots/step-N/    config.json, model.safetensors in float16, tokenizer files, state.json, checksums.json

A model learns most in its first steps, so n snapshots of a run of T steps are evenly spaced in the logarithm of the
step, from the first to the last:

    s_i = T^(i / (n - 1))        i = 0 ... n - 1, rounded, and each at least one behind the one before it

They have the weights that the optimiser gives for evaluation, are written as checkpoints are, and all are kept. With a
budget of time T is what is known at a step, so a snapshot that has come to lie behind is taken at once.
"""

from bisect import bisect_right
from functools import lru_cache
from pathlib import Path
from time import perf_counter

import numpy as np

from ...core.model import MiniBERT
from ...text.tokenizer import Tokenizer
from ..loop import State
from .checkpoints import list_checkpoints, write_checkpoint

FOLDER = "snapshots"


@lru_cache(maxsize=8)
def snapshot_steps(count: int, total: int) -> tuple[int, ...]:
    """The steps of `count` snapshots of a run of `total` steps; all steps, if there are no more."""
    n = min(count, total)
    if n < 2:
        return (total,) * n
    steps: list[int] = []
    for i in range(n):
        steps.append(max(round(total ** (i / (n - 1))), steps[-1] + 1 if steps else 1))
    return tuple(steps)


class Snapshots:
    """Writes the snapshots of a run when they are due; without a run, none ever is."""

    def __init__(self, run: Path | None, count: int):
        self.run, self.count = run, count
        self.seconds = 0.0                # that writing the last one took
        self.spent = 0.0                  # that writing has taken since the run was last begun or resumed

    def due(self, state: State) -> bool:
        """Does a snapshot belong to this step, or to one since the last that was taken? Not to one that has failed."""
        if self.run is None or not self.count or state.bad_in_a_row:
            return False
        steps = snapshot_steps(self.count, state.total_steps)
        return bisect_right(steps, state.step) > bisect_right(steps, state.snapshot_step)

    def write(self, model: MiniBERT, tokenizer: Tokenizer | None, state: State) -> None:
        """The snapshot of this step. Numbers beyond the range of float16 are kept as they are."""
        assert self.run is not None
        begin = perf_counter()
        fits = float(np.abs(model.params.flat).max()) < float(np.finfo(np.float16).max)
        write_checkpoint(self.run / FOLDER / f"step-{state.step}", model, tokenizer, state.to_json(),
                         dtype=np.float16 if fits else None)
        self.seconds = perf_counter() - begin
        self.spent += self.seconds

    def seconds_ahead(self, state: State) -> float:
        """What writing those that are still to come will take."""
        steps = snapshot_steps(self.count, state.total_steps) if self.count else ()
        return self.seconds * (len(steps) - bisect_right(steps, state.step))

    def bytes_needed(self, model: MiniBERT) -> int:
        """About what all of them take on disk."""
        return self.count * model.params.flat.size * np.dtype(np.float16).itemsize


def kept_models(run: Path) -> list[Path]:
    """The models that a run has kept, by their steps, the oldest first: snapshots, and checkpoints of other steps."""
    found = {path.name: path for folder in ("checkpoints", FOLDER) for path in list_checkpoints(run / folder)}
    return sorted(found.values(), key=lambda path: int(path.name[5:]))
