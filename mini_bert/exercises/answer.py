"""What a learner has written: a file that is run, and whose mistakes become sentences.

Whatever goes wrong inside it is told with the learner's own line; no traceback of ours is shown.
"""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import Any

import numpy as np

from ..errors import DataError

_MODULE = "mini_bert_exercise_answer"
_LONGEST = 1_000_000          # bytes; nobody writes a backward of that length


class AnswerError(Exception):
    """A mistake in the answer, as a sentence, and the exception that it was, if it was one."""

    def __init__(self, sentence: str, kind: type[BaseException] | None = None):
        super().__init__(sentence)
        self.kind = kind


class Answer:
    """The functions of a learner's file."""

    def __init__(self, source: str, name: str, folder: Path | None = None):
        self.source, self.name = source, name
        self._module = ModuleType(_MODULE)
        with self._running(folder):
            exec(compile(source, name, "exec"), vars(self._module))

    @classmethod
    def read(cls, path: Path) -> "Answer":
        """From a file; one that is not there or no text is refused."""
        try:
            if path.stat().st_size > _LONGEST:
                raise DataError(f"{path} is larger than {_LONGEST:,} bytes, so it is no answer to an exercise.")
            source = path.read_bytes().decode("utf-8")
        except FileNotFoundError:
            raise DataError(f"There is no file {path}; begin with: mini-bert exercise start NAME.") from None
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None
        except UnicodeDecodeError as error:
            raise DataError(f"{path} is not text in UTF-8: byte {error.start}.") from None
        return cls(source, str(path), path.parent)

    def call(self, function: str, *arguments: Any, **options: Any) -> Any:
        """What the learner's function returns; what it raises becomes a AnswerError."""
        found = vars(self._module).get(function)
        if not callable(found):
            raise AnswerError(f"{self.name} has no function {function}.")
        with self._running():
            return found(*arguments, **options)

    @contextmanager
    def _running(self, folder: Path | None = None) -> Iterator[None]:
        """While the learner's code runs: what it prints goes to standard error, what it raises becomes a sentence."""
        path, before = list(sys.path), sys.modules.get(_MODULE)
        sys.modules[_MODULE] = self._module               # dataclasses look themselves up there
        if folder is not None:
            sys.path.insert(0, str(folder.resolve()))
        try:
            with redirect_stdout(sys.stderr), warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")           # a NaN is told in its own words
                yield
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise AnswerError(self._told(error), type(error)) from None
        finally:
            sys.path[:] = path
            del sys.modules[_MODULE]
            if before is not None:
                sys.modules[_MODULE] = before

    def _told(self, error: BaseException) -> str:
        """The exception in one sentence, with the learner's line where it happened."""
        lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == self.name]
        if isinstance(error, SyntaxError) and error.filename == self.name:
            lines.append(error.lineno)
        what = " ".join(str(error.msg if isinstance(error, SyntaxError) else error).split())[:300].rstrip(".")
        said = f"{type(error).__name__}: {what}" if what else type(error).__name__
        if isinstance(error, NotImplementedError) and lines:
            return f"{self.name}, line {lines[-1]}: nothing is written here yet."
        written = self.source.splitlines()
        if not lines or not lines[-1] or lines[-1] > len(written):
            return f"{self.name}: {said}."
        line = written[lines[-1] - 1].split("  #")[0].strip()
        return f"{self.name}, line {lines[-1]}: {line}: {said}."
