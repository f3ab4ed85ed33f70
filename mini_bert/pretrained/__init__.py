"""The models that ship with the package. Each is a directory beside this file, with its card, README.md.

A bare name such as "mini" is the shipped model of that name; a directory of the same name is "./mini", or a Path.
"""

from os import PathLike
from pathlib import Path

_HERE = Path(__file__).parent


def shipped_names() -> list[str]:
    """The names that need no path."""
    return sorted(path.parent.name for path in _HERE.glob("*/config.json"))


def model_directory(name_or_path: str | PathLike[str]) -> Path:
    """The directory of a shipped model; the model in the directory of a fit; or the path itself."""
    if isinstance(name_or_path, str) and name_or_path in shipped_names():
        return _HERE / name_or_path
    path = Path(name_or_path)
    models = (path / "run" / "best", path / "run" / "final") if _is_fit(path) else ()
    return next((model for model in models if model.is_dir()), path)


def _is_fit(path: Path) -> bool:
    try:
        return (path / "fit.json").is_file()
    except (OSError, ValueError):             # a name that nothing can have
        return False
