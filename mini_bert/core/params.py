"""One flat buffer for all parameters, and named views of it.

An optimiser, a norm, an average or a checkpoint acts on `params.flat`, one array; a layer reads
`params["W_Q_0"]`, which is a view of its part. A gradient store is another Parameters of the same
layout. A tie is a second name for the same memory: what is added under either name adds up. The parameters of several
models can be joined in one buffer: see objectives/joint_params.py.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from math import prod
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import ConfigError, ParameterError
from ..randomness import generator
from .arrays import Array, IntArray

_AT_A_TIME = 1 << 20          # elements of a product that are computed before they are added


@dataclass(frozen=True)
class ParamSpec:
    """A parameter: its name and shape, how it is drawn (normal around `mean` with deviation `std`), and what it is."""

    name: str
    shape: tuple[int, ...]
    std: float = 0.0
    mean: float = 0.0
    component: str = ""                   # embeddings, attention, feedforward, norm, mlm_head, pooler or task_head
    layer: int | None = None
    axes: tuple[str, ...] = ()            # what the axes run over, if not features: "vocabulary", "positions", "heads"
    symbol: str = ""                      # in formulas: W_Q, gamma
    prefix: str = ""                      # of the model it belongs to, where several are joined: "generator."

    @property
    def group(self) -> str:
        """The part of the model that it belongs to: embeddings, layer_0, layer_1, ..., head."""
        if self.layer is not None:
            return f"{self.prefix}layer_{self.layer}"
        return self.prefix + ("embeddings" if self.component == "embeddings" else "head")

    @property
    def is_hidden_matrix(self) -> bool:
        """Is it a matrix inside a layer that maps features to features, used as x @ W? A table is not: see `axes`."""
        return self.layer is not None and len(self.shape) == 2 and not any(self.axes)


@dataclass(frozen=True)
class Tie:
    """`name` is another name for `target`, transposed if `transposed`."""

    name: str
    target: str
    transposed: bool = False
    symbol: str = ""


class Gradients(Protocol):
    """Where a backward leaves the gradients of parameters: each call adds to what the name has.

    What is passed belongs to the gradients from then on: the caller does not change it any more.
    """

    def add(self, name: str, value: Array) -> None:
        """The gradient of a whole parameter."""

    def add_rows(self, name: str, rows: IntArray, values: Array) -> None:
        """The gradient of some rows, which are distinct."""

    def add_product(self, name: str, x: Array, dy: Array) -> None:
        """The gradient x^T dy (in, out) of a matrix, as factors x (N, in) and dy (N, out)."""

    def complete(self, names: Iterable[str]) -> None:
        """This backward adds no more to these parameters. A hint: what is never announced is complete at the end."""


class Parameters(Mapping[str, Array]):
    """Named views of one flat buffer, in the order of the specs. Iteration leaves out ties."""

    def __init__(self, layout: Iterable[ParamSpec | Tie], dtype: npt.DTypeLike = np.float32, *,
                 memory: Array | None = None):
        self.layout = tuple(layout)
        self.specs = {item.name: item for item in self.layout if isinstance(item, ParamSpec)}
        names = [item.name for item in self.layout]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ConfigError(f"Two parts of the model have a parameter {twice}; each needs a name of its own.")
        self.ties = {item.name: item for item in self.layout if isinstance(item, Tie)}
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self._flat: Array | None = memory             # somebody's zeros, or our own
        if memory is None:
            self._flat = np.zeros(sum(prod(spec.shape) for spec in self.specs.values()), dtype)
        self.slices: dict[str, slice] = {}        # where in `flat` each parameter lies
        self._views: dict[str, Array] = {}
        start = 0
        for name, spec in self.specs.items():
            self.slices[name] = slice(start, start + prod(spec.shape))
            self._views[name] = self.flat[self.slices[name]].reshape(spec.shape)
            start = self.slices[name].stop
        for name, tie in self.ties.items():
            target = self._views[tie.target]
            self._views[name] = target.T if tie.transposed else target

    @property
    def flat(self) -> Array:
        """All numbers in one array."""
        if self._flat is None:
            raise ParameterError("These parameters are joined with others and share some of them, so they are not one "
                                 "array; use those that they are joined in.")
        return self._flat

    @flat.setter
    def flat(self, value: Array) -> None:
        if value is not self._flat:               # `params.flat -= x` ends here, with the buffer itself
            raise ParameterError("The flat buffer cannot be replaced: the named views would keep the old one; "
                                 "write params.flat[...] = value to change its numbers.")

    @property
    def nbytes(self) -> int:
        """What the numbers take in memory."""
        return self.flat.nbytes

    def pieces(self) -> Iterator[Array]:
        """All numbers as they are kept, for a digest."""
        yield self.flat

    def require_trainable(self) -> None:
        """Refuse parameters that are kept in fewer bits: see precision/narrow_params.py."""

    def __reduce__(self) -> tuple[Any, ...]:      # copies and workers get views of their own buffer
        return _restore, (self.layout, np.concatenate([self[name].ravel() for name in self]))

    def move_into(self, whole: "Parameters", prefix: str) -> None:
        """Become a view of the parameters of `whole` whose names are these behind a prefix."""
        self._views = {name: whole[prefix + name] for name in self._views}
        places = [whole.slices.get(prefix + name) for name in self.specs]
        own = [place for place in places if place is not None]
        self._flat = whole.flat[own[0].start : own[-1].stop] if len(own) == len(places) else None

    def __getitem__(self, name: str) -> Array:
        try:
            return self._views[name]
        except KeyError:
            near = get_close_matches(str(name), list(self._views), n=1, cutoff=0.0)
            hint = f"; the nearest name is {near[0]!r}" if near else ""
            raise ParameterError(f"There is no parameter {name!r}{hint}.") from None

    def __setitem__(self, name: str, value: Any) -> None:
        if value is not self[name]:               # `params[name] += x` ends here, with the view itself
            raise ParameterError(f"{name} is a view of the flat buffer and cannot be replaced; "
                                 f"write params[{name!r}][...] = value to change its numbers.")

    def __iter__(self) -> Iterator[str]:
        return iter(self.specs)

    def __len__(self) -> int:
        return len(self.specs)

    def __contains__(self, name: object) -> bool:
        return name in self._views

    def axes_of(self, name: str) -> tuple[str, ...]:
        """What each axis of a parameter, or of a name tied to it, runs over; "" for features."""
        if name in self.ties:
            tie = self.ties[name]
            axes = self.axes_of(tie.target)
            return axes[::-1] if tie.transposed else axes
        axes = self.specs[name].axes
        return axes + ("",) * (self[name].ndim - len(axes))

    @contextmanager
    def viewed_as(self, kind: type[Array]) -> Iterator[None]:
        """Meanwhile `params[name]` is a view of another class of arrays, such as one that counts its products."""
        before = self._views
        self._views = {name: view.view(kind) for name, view in before.items()}
        try:
            yield
        finally:
            self._views = before

    def zeros_like(self) -> "Parameters":
        """The same layout, all zeros: a place for gradients."""
        return Parameters(self.layout, self.dtype)

    def add(self, name: str, value: Array) -> None:
        """As a place for gradients: add to a parameter's."""
        self[name] += value

    def add_rows(self, name: str, rows: IntArray, values: Array) -> None:
        self[name][rows] += values

    def add_product(self, name: str, x: Array, dy: Array) -> None:
        add_product(self[name], x, dy)

    def complete(self, names: Iterable[str]) -> None:
        pass

    def initialise(self, seed: int) -> None:
        """Draw every parameter anew, each from its own generator and the same in either precision."""
        for name, spec in self.specs.items():
            self[name][...] = spec.mean
            if spec.std:
                draw = generator(seed, "init", name).standard_normal(spec.shape)
                draw *= spec.std
                self[name][...] += draw


def add_product(dW: Array, x: Array, dy: Array, overwrite: bool = False) -> None:
    """dW += x^T dy, or dW = x^T dy; a few columns at a time, so that little extra memory is needed."""
    if not dW.flags.c_contiguous:                 # a transposed name for another parameter
        dW, x, dy = dW.T, dy, x
    columns = max(1, _AT_A_TIME // len(dW))
    for start in range(0, dW.shape[1], columns):
        some = slice(start, start + columns)
        if overwrite:
            np.matmul(x.T, dy[:, some], out=dW[:, some])
        else:
            dW[:, some] += x.T @ dy[:, some]


def _restore(layout: tuple[ParamSpec | Tie, ...], flat: Array) -> Parameters:
    params = Parameters(layout, flat.dtype)
    params.flat[...] = flat
    return params
