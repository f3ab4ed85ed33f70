"""Pure functions of arrays, one operation per file: formula, forward, backward and gradient checks. Operations own no
parameters and know nothing of models."""

from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import walk_packages
from typing import Any, NamedTuple

from ..arrays import Array
from ..formulas import Formula
from ..gradcheck import Check, CheckResult, check_operation


class Operation(NamedTuple):
    name: str
    forward: Callable[..., Any]
    backward: Callable[..., Any]
    checks: list[Check]
    formula: Formula

    def check(self, seed: int = 0) -> list[CheckResult]:
        """Its gradients against finite differences."""
        return check_operation(self.name, self.forward, self.backward, self.checks, seed)


class Activation(NamedTuple):
    """An element-wise operation for the slot `activation`; each function may put its result into `out`, or ignore it.

        forward(x, out) -> y, cache          backward(dy, cache, out) -> dx
    """

    forward: Callable[[Array, Array | None], tuple[Array, Any]]
    backward: Callable[[Array, Any, Array | None], Array]
    formula: Formula
    checks: list[Check]
    extra: int = 0            # arrays of the input's size that the cache keeps besides the result
    value: Callable[[Array, Array | None], Array] | None = None       # y alone, if that is cheaper than y and its cache

    def apply(self, x: Array, *, forward_only: bool) -> tuple[Array, Any]:
        """y, which may be in the memory of x, and its cache; of a pass without a backward there may be none."""
        if forward_only and self.value is not None:
            return self.value(x, x), None
        return self.forward(x, x)


def operations() -> Iterator[Operation]:
    """Every operation of this package: the file `name.py` has name_forward, name_backward, FORMULA and CHECKS."""
    for found in walk_packages(__path__, f"{__name__}."):
        if not found.ispkg:
            module, name = import_module(found.name), found.name.rpartition(".")[2]
            yield Operation(name, getattr(module, f"{name}_forward"), getattr(module, f"{name}_backward"),
                            module.CHECKS, module.FORMULA)
