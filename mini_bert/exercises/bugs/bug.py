"""A planted bug: its question, its cause, and the diagnostics that catch it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ...errors import MiniBertError
from .causes import CAUSES
from .diagnostics import DIAGNOSTICS, Reading, error_reading, healthy_reading
from .planting import Edit, planted


@dataclass(frozen=True, kw_only=True)
class Bug:
    name: str
    question: str
    cause: str                            # a key of CAUSES
    edits: tuple[Edit, ...]
    caught_by: tuple[str, ...]            # diagnostics that fail with the bug and pass without it
    silent: tuple[str, ...]               # diagnostics that pass even with the bug
    hints: tuple[str, str, str]

    @property
    def shows(self) -> tuple[str, ...]:
        """The diagnostics to show, in the order of DIAGNOSTICS, so that the order gives nothing away."""
        return tuple(name for name in DIAGNOSTICS if name in (*self.caught_by, *self.silent))

    @property
    def answer(self) -> int:
        """The number of its cause in the common list."""
        return list(CAUSES).index(self.cause) + 1

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Inside this context, the library has the bug."""
        with planted(self.edits):
            yield

    def reading(self, diagnostic: str, seed: int = 0) -> Reading:
        """The reading of a diagnostic while the bug is planted."""
        healthy, compare = healthy_reading(diagnostic, seed), DIAGNOSTICS[diagnostic].like_healthy
        with self.planted():
            try:
                found = DIAGNOSTICS[diagnostic].run(seed)
            except MiniBertError as error:
                return error_reading(error)
        return found if compare is None else replace(found, passed=found.passed and compare(found, healthy))
