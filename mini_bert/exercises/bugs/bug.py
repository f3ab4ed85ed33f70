"""What a planted bug is."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ...errors import MiniBertError
from .causes import CAUSES
from .diagnostics import MEANS, Look, healthy, refused
from .planting import Edit, planted


@dataclass(frozen=True, kw_only=True)
class Bug:
    name: str
    question: str
    cause: str                            # a key of CAUSES
    edits: tuple[Edit, ...]
    caught_by: tuple[str, ...]            # means that fail with the bug, and pass without
    silent: tuple[str, ...]               # means that pass with the bug too
    hints: tuple[str, str, str]

    @property
    def shows(self) -> tuple[str, ...]:
        """The means whose figures are shown, in the order of MEANS, so that it gives nothing away."""
        return tuple(name for name in MEANS if name in (*self.caught_by, *self.silent))

    @property
    def answer(self) -> int:
        """The number of its cause in the common list."""
        return list(CAUSES).index(self.cause) + 1

    @contextmanager
    def planted(self) -> Iterator[None]:
        """While this lasts, the library has the bug."""
        with planted(self.edits):
            yield

    def look(self, means: str, seed: int = 0) -> Look:
        """What one of the means sees while the bug is planted."""
        sound, judge = healthy(means, seed), MEANS[means].same
        with self.planted():
            try:
                look = MEANS[means].look(seed)
            except MiniBertError as error:
                return refused(error)
        return look if judge is None else replace(look, passed=look.passed and judge(look, sound))
