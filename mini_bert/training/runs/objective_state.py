"""What an objective brings to a checkpoint: parameters that are not the model's, and its state.

Arrays go to a file of their own, other values to the run's state.
"""

from pathlib import Path
from typing import Any

import numpy as np

from ...core.arrays import Array
from ...core.model import MiniBERT
from ...errors import CheckpointError
from ...objectives.objective import CorpusObjective
from .checkpoints import OBJECTIVE, read_arrays

_KEY = "objective"            # in the run's state


def packed(objective: CorpusObjective[Any, Any], model: MiniBERT) -> tuple[dict[str, Any], dict[str, Any]]:
    """What joins the run's state, and the arrays."""
    state = objective.state()
    arrays = {f"state.{name}": value for name, value in state.items() if isinstance(value, np.ndarray)}
    values = {name: value for name, value in state.items() if not isinstance(value, np.ndarray)}
    return {_KEY: values} if values else {}, _further_params(objective, model) | arrays


def read_further(objective: CorpusObjective[Any, Any], model: MiniBERT, checkpoint: Path) -> dict[str, Array]:
    """The arrays that `packed` gave, out of the checkpoint's file."""
    return read_arrays(checkpoint / OBJECTIVE, _further_params(objective, model))


def unpack(objective: CorpusObjective[Any, Any], model: MiniBERT, values: dict[str, Any], arrays: dict[str, Array],
           checkpoint: Path) -> None:
    """Take back what `packed` gave, out of the run's state `values` and the `arrays` of the checkpoint's file."""
    state = values.pop(_KEY, {})
    if not isinstance(state, dict):
        raise CheckpointError(f"{checkpoint} has no readable state of its objective.")
    for name, value in _further_params(objective, model).items():
        value[...] = arrays[name]
    objective.restore(state | {name.removeprefix("state."): value for name, value in arrays.items()
                               if name.startswith("state.")})


def _further_params(objective: CorpusObjective[Any, Any], model: MiniBERT) -> dict[str, Array]:
    """What is trained besides the model, which is saved separately."""
    return {f"params.{name}": value for name, value in objective.params.items()
            if name not in model.params or not np.shares_memory(value, model.params[name])}
