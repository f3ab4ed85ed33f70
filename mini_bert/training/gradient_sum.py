"""The sum of the gradients of several micro-batches, computed at the same time by several threads.

Floating-point addition is not associative, so a sum in the order of arrival would differ from run to run.
Here each micro-batch has a turn. A gradient whose turn has not come is laid aside; whoever adds the one before
it adds it too. The result is that of one thread, bit for bit, whatever the number of threads; there is one
buffer for all of them, and nobody waits.

The first turn's gradients are not added to zeros but written over what the last step left, by the matrix
product itself where there is one. A product so large that it should not be in memory twice, as that of a large
vocabulary, waits for its turn as its two factors.
"""

from collections import Counter
from collections.abc import Collection
from threading import Lock
from typing import NamedTuple

from ..core.arrays import Array, IntArray
from ..core.params import Parameters, add_product

_SMALL = 1 << 22              # numbers of a product that may wait as a whole


class _Part(NamedTuple):
    """A gradient on its way: of a whole parameter, of some rows, or as the factors of a product."""

    name: str
    value: Array
    rows: IntArray | None = None
    x: Array | None = None    # the gradient is x^T value


class GradientSum:
    """`begin()`, then each micro-batch leaves its gradients in `turn(i)`, then `finish()`."""

    def __init__(self, gradients: Parameters, unused: Collection[str] = ()):
        """`unused` are names, ties among them, to which no backward will add."""
        self.gradients = gradients
        self._target = {name: gradients.ties[name].target if name in gradients.ties else name
                        for name in (*gradients, *gradients.ties)}
        # how often one backward adds to a parameter: once, and once more for each of its other names
        self._uses = Counter(target for name, target in self._target.items() if name not in unused)
        self._locks = {name: Lock() for name in gradients}
        self._added: dict[str, int] = {}
        self._aside: dict[str, dict[int, _Part]] = {}

    def begin(self) -> None:
        """Forget the gradients of the last step."""
        self._added = dict.fromkeys(self.gradients, 0)
        self._aside = {name: {} for name in self.gradients}

    def turn(self, number: int) -> "Turn":
        """Where the backward of micro-batch `number`, counted from 0, leaves its gradients."""
        return Turn(self, number)

    def finish(self) -> None:
        """All turns are over: what none of them touched is zero."""
        for name, added in self._added.items():
            if not added:
                self.gradients[name].fill(0)
            assert not self._aside[name], f"{name}: a turn is missing"

    def _put(self, number: int, part: _Part) -> None:
        """Add the `number`-th contribution to a parameter, and those behind it that have been waiting."""
        target = self._target[part.name]
        waiting: _Part | None = part
        while waiting is not None:
            with self._locks[target]:
                if self._added[target] != number:
                    self._aside[target][number] = waiting
                    return
            # its turn has come: until it is counted nobody else touches the buffer, so no lock is held
            self._add(waiting, first=number == 0)
            with self._locks[target]:
                self._added[target] = number = number + 1
                waiting = self._aside[target].pop(number, None)

    def _is_turn(self, name: str, number: int) -> bool:
        return self._added[self._target[name]] == number

    def _add(self, part: _Part, first: bool) -> None:
        view = self.gradients[part.name]
        if part.x is not None:
            add_product(view, part.x, part.value, overwrite=first)
        elif part.rows is not None:
            if first:
                view.fill(0)
            view[part.rows] += part.value
        elif first:
            view[...] = part.value
        else:
            view += part.value


class Turn:
    """The gradients of one micro-batch, for `MiniBERT.backward`."""

    def __init__(self, total: GradientSum, number: int):
        self._total, self._number = total, number
        self._given: Counter[str] = Counter()

    def _next(self, name: str) -> int:
        """The number of this turn's next contribution to a parameter."""
        target = self._total._target[name]
        uses = self._total._uses[target]
        assert self._given[target] < uses, f"{target} gets more gradients than it has names"
        self._given[target] += 1
        return self._number * uses + self._given[target] - 1

    def add(self, name: str, value: Array) -> None:
        self._total._put(self._next(name), _Part(name, value))

    def add_rows(self, name: str, rows: IntArray, values: Array) -> None:
        self._total._put(self._next(name), _Part(name, values, rows=rows))

    def add_product(self, name: str, x: Array, dy: Array) -> None:
        number = self._next(name)
        part = _Part(name, dy, x=x)
        if not self._total._is_turn(name, number) and x.shape[1] * dy.shape[1] <= _SMALL:
            part = _Part(name, x.T @ dy)      # while it waits: whoever adds it shall not have to compute it as well
        self._total._put(number, part)
