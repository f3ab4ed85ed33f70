"""The models shipped with the package, each in a directory next to this file, with a model card, README.md.

A string such as "mini" is the name of a shipped model; write "./mini", or use a Path, for a directory of that name.
"""

from os import PathLike
from pathlib import Path

from ..errors import CheckpointError
from ..readers import is_file

_HERE = Path(__file__).parent


def shipped_names() -> list[str]:
    """The names of the shipped models."""
    return sorted(path.parent.name for path in _HERE.glob("*/config.json"))


def model_directory(name_or_path: str | PathLike[str]) -> Path:
    """The directory of a shipped model, the best or else the final model of a run or a fit, or the path itself."""
    if isinstance(name_or_path, str) and name_or_path in shipped_names():
        return _HERE / name_or_path
    path = Path(name_or_path)
    run = path / "run" if is_file(path / "fit.json") else path
    if is_file(path / "config.json") or not is_file(run / "config.yaml"):
        return path
    for name in ("best", "final"):
        if (run / name).is_dir():
            return run / name
    raise CheckpointError(f"The run {path} has no model yet, neither best nor final: continue training with mini-bert "
                          f"resume {run}, or name one of its checkpoints in {run / 'checkpoints'}.")
