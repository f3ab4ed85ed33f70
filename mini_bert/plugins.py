"""Variants of one's own: a Python file that registers words, loaded by `--import FILE` or `import_file(FILE)`."""

import importlib.util
import sys
import traceback
from os import PathLike
from pathlib import Path

from .core import modules  # noqa: F401  (the built-in words come first, so that none is replaced)
from .errors import ConfigError


def import_file(file: str | PathLike[str]) -> None:
    """Run a Python file, whose `register(slot, word)` calls make its words known.

    It is the caller's own code and runs with all rights, as `python FILE` would.
    """
    path = Path(file).resolve()
    if not path.is_file():
        raise ConfigError(f"There is no file {str(file)[:200]} to import.")
    name = f"mini_bert_plugin_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path.name} is not a Python file: its name must end in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except ConfigError:
        raise
    except (Exception, SystemExit) as error:
        lines = [frame.lineno for frame in _frames(error) if frame.filename == str(path)]
        where = f", line {lines[-1]}" if lines else ""
        raise ConfigError(f"{path.name}{where} fails: {type(error).__name__}: {error}.") from None


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    return list(traceback.extract_tb(error.__traceback__))
