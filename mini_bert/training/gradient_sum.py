"""The sum of the gradients of several micro-batches, computed at the same time by several threads.

Floating-point addition is not associative, so a sum in the order of arrival would differ from run to run. Here the
gradients of a parameter are added along a fixed binary tree over the numbers of the micro-batches:

    ((0 + 1) + (2 + 3)) + ((4 + 5) + 6)

Whoever arrives second at a node adds both sides and climbs; nobody waits. The result is the same, bit for bit,
whatever the number of threads, and however aligned blocks of micro-batches are shared out among several processes
(gradient_exchange.py).

Within a micro-batch a parameter may get any number of contributions, which are added in the order of its backward.
They enter the tree when the backward announces that there will be no more (`complete`), or at its end. The leftmost
path of the tree is the buffer of the result itself, and its first gradient is written over what the last step left,
by the matrix product itself where there is one. A product so large that it should not be in memory twice, as that of
a large vocabulary, waits as its two factors.
"""

from collections.abc import Iterable
from threading import Lock
from typing import NamedTuple

import numpy as np

from ..core.arrays import Array, IntArray
from ..core.params import Parameters, add_product

_SMALL = 1 << 22              # elements of a product that may wait as a whole


class _Piece(NamedTuple):
    """A contribution: to a whole parameter, to some rows, or as the factors of a product x^T value."""

    name: str                 # the parameter's own name, or one tied to it
    value: Array
    rows: IntArray | None = None
    x: Array | None = None

    def is_all_of(self, owner: str) -> bool:
        """Is its value an array like the whole parameter's?"""
        return self.x is None and self.rows is None and self.name == owner

    def add_to(self, view: Array, overwrite: bool) -> None:
        if self.x is not None:
            add_product(view, self.x, self.value, overwrite=overwrite)
        elif self.rows is not None:
            if overwrite:
                view.fill(0)
            view[self.rows] += self.value
        elif overwrite:
            view[...] = self.value
        else:
            view += self.value


_WRITTEN = _Piece("", np.empty(0))        # stands for a contribution that is in the result already


class GradientSum:
    """`begin(n)`, then each of n micro-batches leaves its gradients in `micro_batch(i)`, then `finish()`.

    The sum of a block of a larger tree is `exact`: what has no gradient is -0, which changes no sum, and `kinds` says
    by parameter whether all of it is "absent", or has come from one micro-batch in some "rows" alone.
    """

    def __init__(self, gradients: Parameters, exact: bool = False):
        self.gradients, self.exact = gradients, exact
        self.kinds: dict[str, str] = {}
        self._views = {name: gradients[name] for name in (*gradients, *gradients.ties)}
        self._owner = {name: gradients.ties[name].target if name in gradients.ties else name
                       for name in self._views}
        self._locks = {name: Lock() for name in gradients}
        self._count = 0
        # what waits for the other side of its node: (level, index) -> an array, or None for an absent gradient
        self._waiting: dict[str, dict[tuple[int, int], Array | list[_Piece] | None]] = {}

    def begin(self, micro_batches: int) -> None:
        """Forget the gradients of the last step."""
        self._count, self.kinds = micro_batches, {}
        self._waiting = {name: {} for name in self.gradients}

    def micro_batch(self, number: int) -> "MicroBatchGradients":
        """Where the backward of micro-batch `number`, counted from 0, leaves its gradients."""
        return MicroBatchGradients(self, number)

    def finish(self) -> None:
        """All micro-batches are done."""
        for name, waiting in self._waiting.items():
            if self._count == 0:
                self._views[name].fill(0)
            assert not waiting, f"{name}: a micro-batch is missing"

    def _view(self, array: Array, name: str) -> Array:
        """`array`, the gradient of a parameter, as a name tied to it sees it."""
        tie = self.gradients.ties.get(name)
        return array.T if tie is not None and tie.transposed else array

    def _dense(self, owner: str, pieces: list[_Piece], out: Array | None = None) -> Array:
        """The sum of a micro-batch's contributions, in `out` if given."""
        if out is None:
            if len(pieces) == 1 and pieces[0].is_all_of(owner):
                return pieces[0].value
            out = np.empty_like(self._views[owner])
        for i, piece in enumerate(pieces):
            piece.add_to(self._view(out, piece.name), overwrite=i == 0)
        return out

    def put(self, owner: str, number: int, value: Array | list[_Piece] | None) -> None:
        """The gradient of a parameter by a whole micro-batch, None if it has none, enters the tree."""
        waiting, lock, total = self._waiting[owner], self._locks[owner], self._views[owner]
        level, index = 0, number
        while (1 << level) < self._count:
            other = index ^ 1
            if other << level >= self._count:         # the tree has no such side
                level, index = level + 1, index >> 1
                continue
            with lock:
                if (level, other) not in waiting:
                    waiting[level, index] = value
                    return
                partner = waiting.pop((level, other))
            left, right = (value, partner) if index < other else (partner, value)
            value = self._add(owner, left, right, total if index >> 1 == 0 else None)
            level, index = level + 1, index >> 1
        if value is None:
            total.fill(-0.0 if self.exact else 0)
            if self.exact:
                self.kinds[owner] = "absent"
        elif value is not total:
            self._move(owner, value, total)

    def _add(self, owner: str, left: Array | list[_Piece] | None, right: Array | list[_Piece] | None,
             out: Array | None) -> Array | list[_Piece] | None:
        """left + right, in the memory of the result (`out`) on the leftmost path."""
        if left is None or right is None:
            return left if right is None else right
        array = self._dense(owner, left, out) if isinstance(left, list) else left
        self.fill_up(owner, array)
        if not isinstance(right, list):
            array += right
        elif len(right) == 1:
            right[0].add_to(self._view(array, right[0].name), overwrite=False)
        else:
            array += self._dense(owner, right)
        return array

    def _move(self, owner: str, value: Array | list[_Piece], total: Array) -> None:
        """A sum that no leftmost micro-batch had a part in goes to its place."""
        if not isinstance(value, list):
            total[...] = value
        elif self.exact and len(value) == 1 and value[0].rows is not None:
            self.put_rows(owner, value[0])
        else:
            self._dense(owner, value, out=total)

    def put_rows(self, owner: str, piece: _Piece) -> None:
        """Rows alone, and nothing in all others."""
        view = self._views[piece.name]
        view.fill(-0.0)
        view[piece.rows] = piece.value
        self.kinds[owner] = "rows"

    def fill_up(self, owner: str, array: Array) -> None:
        """What has come in rows alone gets zeros in the others, before anything is added."""
        if self.kinds.get(owner) == "rows" and array is self._views[owner]:
            array += 0.0                              # -0 becomes 0
            del self.kinds[owner]


class MicroBatchGradients:
    """The gradients of one micro-batch; see core.params.Gradients. The first one's go to the result at once."""

    def __init__(self, total: GradientSum, number: int):
        self._total, self._number = total, number
        self._pieces: dict[str, list[_Piece]] = {name: [] for name in total.gradients}

    def _keep(self, piece: _Piece) -> None:
        total = self._total
        owner = total._owner[piece.name]
        assert owner in self._pieces, f"{owner} was announced as complete, and gets another gradient"
        pieces = self._pieces[owner]
        if self._number == 0:
            if total.exact and piece.rows is not None and not pieces:
                total.put_rows(owner, piece)
            else:
                total.fill_up(owner, total._views[owner])
                piece.add_to(total._views[piece.name], overwrite=not pieces)
            piece = _WRITTEN
        elif pieces and pieces[-1].is_all_of(owner):      # as of tied embeddings: no second array for the rows
            piece.add_to(total._view(pieces[-1].value, piece.name), overwrite=False)
            return
        elif piece.x is not None and total._views[owner].size <= _SMALL:
            product = np.empty_like(total._views[owner])
            piece.add_to(total._view(product, piece.name), overwrite=True)     # while its factors are in the cache
            piece = _Piece(owner, product)
        pieces.append(piece)

    def add(self, name: str, value: Array) -> None:
        self._keep(_Piece(name, value))

    def add_rows(self, name: str, rows: IntArray, values: Array) -> None:
        self._keep(_Piece(name, values, rows=rows))

    def add_product(self, name: str, x: Array, dy: Array) -> None:
        self._keep(_Piece(name, dy, x=x))

    def complete(self, names: Iterable[str]) -> None:
        """This backward adds no more to these parameters: their gradients enter the tree."""
        for name in names:
            if name in self._pieces:
                self._total.put(name, self._number, self._gradient(name, self._pieces.pop(name)))

    def _gradient(self, owner: str, pieces: list[_Piece]) -> Array | list[_Piece] | None:
        """The sum of the pieces; as pieces, if some are much smaller than the sum and whoever adds them can do so."""
        if not pieces:
            return None
        if self._number == 0:
            return self._total._views[owner]
        compact = any(piece.rows is not None or piece.x is not None for piece in pieces)
        return pieces if compact else self._total._dense(owner, pieces)

    def finish(self) -> None:
        """The backward is done."""
        self.complete(list(self._pieces))
