"""A learner's answer: a file whose functions are run.

An exception in it becomes one sentence with the learner's own line, and no traceback is shown.
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
_LONGEST = 1_000_000          # bytes; an answer is never that long


class AnswerError(Exception):
    """A mistake in the answer as a sentence, and the type of the exception if there was one."""

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
        """Read a file; a missing file or one that is not text is an error."""
        try:
            if path.stat().st_size > _LONGEST:
                raise DataError(f"{path} is larger than {_LONGEST:,} bytes; name the file of an answer.")
            source = path.read_bytes().decode("utf-8")
        except FileNotFoundError:
            raise DataError(f"There is no file {path}; create it with: mini-bert exercise start NAME.") from None
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None
        except UnicodeDecodeError as error:
            raise DataError(f"{path} is not UTF-8 text: byte {error.start} is invalid.") from None
        return cls(source, str(path), path.parent)

    def call(self, function: str, *arguments: Any, **options: Any) -> Any:
        """Call one of the learner's functions; an exception becomes an AnswerError."""
        found = vars(self._module).get(function)
        if not callable(found):
            raise AnswerError(f"{self.name} has no function {function}.")
        with self._running():
            return found(*arguments, **options)

    @contextmanager
    def _running(self, folder: Path | None = None) -> Iterator[None]:
        """Run the learner's code: its prints go to standard error, its exceptions become AnswerErrors."""
        path, before = list(sys.path), sys.modules.get(_MODULE)
        sys.modules[_MODULE] = self._module               # dataclasses look up their module there
        if folder is not None:
            sys.path.insert(0, str(folder.resolve()))
        try:
            with redirect_stdout(sys.stderr), warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")           # the grader reports NaN itself
                yield
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise AnswerError(self._sentence(error), type(error)) from None
        finally:
            sys.path[:] = path
            del sys.modules[_MODULE]
            if before is not None:
                sys.modules[_MODULE] = before

    def _sentence(self, error: BaseException) -> str:
        """The exception in one sentence, with the learner's line."""
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
