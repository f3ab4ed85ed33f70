"""Steps of a pass in their order, indexed by position or by name."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeVar

from ...errors import InputError


class Named(Protocol):
    @property
    def name(self) -> str: ...


S = TypeVar("S", bound=Named)


class NamedSteps(Sequence[S]):
    """`passed[0]` is the first step, `passed["Q_0"]` the step of that name."""

    def __init__(self, steps: list[S]):
        self.steps = steps
        self._by_name = {step.name: step for step in steps}

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return self.steps[key]
        if key not in self._by_name:
            raise InputError(f"There is no step {key!r}; the steps are {', '.join(self._by_name)}.")
        return self._by_name[key]

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[S]:
        return iter(self.steps)

    @property
    def names(self) -> list[str]:
        return list(self._by_name)
