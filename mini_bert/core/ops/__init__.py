"""Pure functions of arrays, one operation a file, each with its backward and its gradient checks."""

import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, NamedTuple

from ..gradcheck import Check, CheckResult, check_operation


class Operation(NamedTuple):
    name: str
    forward: Callable[..., Any]
    backward: Callable[..., Any]
    checks: list[Check]

    def check(self, seed: int = 0) -> list[CheckResult]:
        """Its gradients against finite differences."""
        return check_operation(*self, list(inspect.signature(self.forward).parameters), seed)


def operations() -> Iterator[Operation]:
    """Every operation of this package: the file `name.py` has name_forward, name_backward and CHECKS."""
    for module_info in iter_modules(__path__):
        name = module_info.name
        module = import_module(f"{__name__}.{name}")
        yield Operation(name, getattr(module, f"{name}_forward"), getattr(module, f"{name}_backward"),
                        module.CHECKS)
