"""The models that ship with the package. Each is a directory beside this file, with its card, README.md.

A bare name such as "mini" is the shipped model of that name; a directory of the same name is "./mini".
"""

from os import PathLike, fspath
from pathlib import Path

_HERE = Path(__file__).parent


def shipped_names() -> list[str]:
    """The names that need no path."""
    return sorted(path.parent.name for path in _HERE.glob("*/config.json"))


def located(name_or_path: str | PathLike[str]) -> Path:
    """The directory of a shipped model, or the path itself."""
    name = fspath(name_or_path)
    return _HERE / name if name in shipped_names() else Path(name)
