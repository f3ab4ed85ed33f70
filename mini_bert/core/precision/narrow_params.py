"""The parameters of a model whose matrices are kept narrow: for use, not for training."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ...errors import ParameterError
from ..arrays import Array
from ..params import Parameters, ParamSpec, Tie
from .narrow import KINDS, NarrowMatrix


def is_narrowed(spec: ParamSpec) -> bool:
    """Is a parameter one that is stored in fewer bits? Matrices are; what is added or multiplied by element is not."""
    return len(spec.shape) == 2 and spec.axes[:1] not in (("heads",), ("segments",)) and min(spec.shape) >= 8


def narrow_matrices(params: Parameters, word: str) -> dict[str, NarrowMatrix]:
    """Every matrix in this kind; the output channels of a table are its rows."""
    return {name: KINDS[word].narrowed(params[name], 0 if any(spec.axes[:1]) and spec.axes[0] != "hidden" else 1)
            for name, spec in params.specs.items() if is_narrowed(spec)}


class NarrowParameters(Parameters):
    """Views by name as in any model, some of them NarrowMatrix. There is no flat buffer, and nothing can be changed."""

    def __init__(self, layout: Iterable[ParamSpec | Tie], values: Mapping[str, Array | NarrowMatrix], word: str,
                 dtype: npt.DTypeLike = np.float32):
        self.layout, self.word, self.dtype = tuple(layout), word, np.dtype(dtype)
        self.specs = {item.name: item for item in self.layout if isinstance(item, ParamSpec)}
        self.ties = {item.name: item for item in self.layout if isinstance(item, Tie)}
        self.slices = {}
        self._flat = None
        self._views: dict[str, Any] = {name: values[name] for name in self.specs}
        for name, tie in self.ties.items():
            target = self._views[tie.target]
            self._views[name] = target.T if tie.transposed else target

    def _refuse(self) -> NoReturn:
        raise ParameterError(f"The weights of this model are {self.word}: it is for use, and cannot be trained or "
                             "written anew; take the model that it was made from, and quantise the result.")

    def require_trainable(self) -> None:
        self._refuse()

    @property
    def flat(self) -> Array:
        self._refuse()

    @flat.setter
    def flat(self, value: Array) -> None:
        self._refuse()

    def zeros_like(self) -> Parameters:
        self._refuse()

    def initialise(self, seed: int) -> None:
        self._refuse()

    def move_into(self, whole: Parameters, prefix: str) -> None:
        self._refuse()

    @property
    def nbytes(self) -> int:
        return sum(self._views[name].nbytes for name in self.specs)

    def pieces(self) -> Iterator[Array]:
        for name in self.specs:
            view = self._views[name]
            yield from view.parts().values() if isinstance(view, NarrowMatrix) else (view,)

    def stored(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays for a file, by name: W_Q_0, and of int8 W_Q_0.scale beside it."""
        found: dict[str, npt.NDArray[Any]] = {}
        for name in self.specs:
            view = self._views[name]
            parts = view.parts() if isinstance(view, NarrowMatrix) else {"": view}
            found |= {name + suffix: part for suffix, part in parts.items()}
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return NarrowParameters, (self.layout, {name: self._views[name] for name in self.specs}, self.word, self.dtype)
