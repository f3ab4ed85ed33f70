"""Variants of your own: a Python file that registers words, loaded by `--import FILE` or `import_file(FILE)`."""

import importlib.util
import os
import sys
import traceback
from os import PathLike
from pathlib import Path

from .core.registry import plugin_paths
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


def failure_of_variant(error: BaseException) -> str | None:
    """An unexpected error in a few lines: its message, and the lines of the user's own files that led to it.

    None if no file of the user's own is in use, or if MINI_BERT_TRACEBACK is set: then the whole traceback is shown.
    """
    files = [file.resolve() for file in plugin_paths()]
    if not files or os.environ.get("MINI_BERT_TRACEBACK"):
        return None
    folders = {file.parent for file in files}
    frames = _frames(error)
    own = [frame for frame in frames if _is_own(Path(frame.filename).resolve(), files, folders)]
    shown = [f"  {os.path.relpath(frame.filename)}, line {frame.lineno}, in {frame.name}: {frame.line}"
             for frame in own or frames[-1:]]
    about = [] if own else [f"  No line of {' or '.join(file.name for file in files)} was running: perhaps a method is "
                            "missing, or returned something of another kind or shape than its slot asks for."]
    return "\n".join([f"{type(error).__name__}: {error}", *shown, *about,
                      "  (MINI_BERT_TRACEBACK=1 shows every line.)"])


def _is_own(file: Path, files: list[Path], folders: set[Path]) -> bool:
    """Is it one of the user's files, or a file next to one that it imports?"""
    beside = any(file.is_relative_to(folder) for folder in folders)
    return file in files or (beside and "site-packages" not in file.parts
                             and not file.is_relative_to(Path(__file__).parent))


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    return list(traceback.extract_tb(error.__traceback__))
