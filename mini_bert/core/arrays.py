"""The types of arrays."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.floating[Any]]
IntArray = npt.NDArray[np.integer[Any]]
BoolArray = npt.NDArray[np.bool_]
Targets = npt.NDArray[Any]    # right answers: numbers of classes, or values


@dataclass(frozen=True)
class Deferred:
    """An activation that the backward does not need: it is computed when a reader asks for it."""

    compute: Callable[[], Array]
