"""Files that a command writes where its user says."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from ..errors import InputError

PAGES = (".html", ".htm")


def output_file(path: Path, endings: Sequence[str], inputs: Iterable[Path] = ()) -> Path:
    """The path, if a file of this kind may be written there: weights or a log are never replaced by a page."""
    if path.suffix.lower() not in endings:
        *others, last = endings
        raise InputError(f"{path} must end in {', '.join(others)}{' or ' if others else ''}{last}.")
    if not path.parent.is_dir():
        raise InputError(f"There is no directory {path.parent} for {path.name}; create it first.")
    if any(path.exists() and given.exists() and path.samefile(given) for given in inputs):
        raise InputError(f"{path} is the file that is read; choose another one to write.")
    return path
