"""The models shipped with the package, each in a directory next to this file, with a model card, README.md.

A string such as "mini" is the name of a shipped model; write "./mini", or use a Path, for a directory of that name.
"""

from os import PathLike
from pathlib import Path

_HERE = Path(__file__).parent


def shipped_names() -> list[str]:
    """The names of the shipped models."""
    return sorted(path.parent.name for path in _HERE.glob("*/config.json"))


def model_directory(name_or_path: str | PathLike[str]) -> Path:
    """The directory of a shipped model, the model inside the directory of a fit, or the path itself."""
    if isinstance(name_or_path, str) and name_or_path in shipped_names():
        return _HERE / name_or_path
    path = Path(name_or_path)
    models = (path / "run" / "best", path / "run" / "final") if _is_fit(path) else ()
    return next((model for model in models if model.is_dir()), path)


def _is_fit(path: Path) -> bool:
    try:
        return (path / "fit.json").is_file()
    except (OSError, ValueError):             # not a valid path
        return False
