"""A learner's answer: a file whose functions run in a separate process.

The grader, in this process, sends inputs and receives arrays. An answer that loops forever, ends its process, takes
all memory or replaces functions harms only the other process, which is ended. An exception in it becomes one sentence
with the learner's own line, and no traceback is shown.
"""

import builtins
import io
import os
import signal
import subprocess
import sys
import weakref
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from json import dumps
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import IO, Any, NamedTuple

import numpy as np

from ..core.arrays import Array
from ..errors import DataError
from ..interrupts import broken_pipes_raise
from ..readers import parse_json, read_text

SECONDS = 20.0                # that one call may take
_LONGEST = 1_000_000          # bytes; an answer is never that long
_LARGEST_REPLY = 1 << 26      # bytes
_PROGRAM = Path(__file__).with_name("answer_process.py")


class AnswerError(Exception):
    """A mistake in the answer as a sentence, and the type of the exception if there was one."""

    def __init__(self, sentence: str, kind: type[BaseException] | None = None):
        super().__init__(sentence)
        self.kind = kind


class Call(NamedTuple):
    """What a function of the answer returned, and the arrays that it was given, as they are afterwards."""

    result: Any
    arguments: list[Array]


class KeptCache:
    """In a list of arguments: the cache that the last call with `keep` returned. It stays in the answer's process."""


class Answer:
    """The functions of a learner's file."""

    def __init__(self, source: str, name: str, folder: Path | None = None):
        self.name = name
        self._process = subprocess.Popen(
            [sys.executable, str(_PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            start_new_session=os.name == "posix", env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})
        self._replies: Queue[bytes] = Queue()
        assert self._process.stdout is not None
        Thread(target=_receive, args=(self._process.stdout, self._replies), daemon=True).start()
        self.close = weakref.finalize(self, _end, self._process)
        self._ask({"source": source, "name": name, "folder": None if folder is None else str(folder.resolve())})

    @classmethod
    def read(cls, path: Path) -> "Answer":
        """Read a file; a missing file or one that is not text is an error."""
        source = read_text(path, DataError, largest=_LONGEST, absent=f"There is no file {path}; create it with: "
                           "mini-bert exercise start NAME.")
        return cls(source, str(path), path.parent)

    def call(self, function: str, arguments: Sequence[Any], options: Mapping[str, Any] | None = None, *,
             keep: bool = False) -> Call:
        """Call one of the learner's functions; an exception becomes an AnswerError.

        With `keep`, the second of two results stays in the other process, for a later argument `KeptCache()`.
        """
        reply = self._ask({"call": function, "arguments": [_encoded(value) for value in arguments], "keep": keep,
                           "options": {name: _encoded(value) for name, value in (options or {}).items()}})
        try:
            return Call(_decoded(reply["result"]), [_decoded(value) for value in reply["arguments"]])
        except (ValueError, KeyError, TypeError, AttributeError, EOFError, MemoryError):
            raise self._ended("sent something other than its results") from None

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send one request and wait for its reply; what goes wrong ends the process."""
        try:
            assert self._process.stdin is not None
            with broken_pipes_raise():
                self._process.stdin.write(dumps(request).encode() + b"\n")
                self._process.stdin.flush()
            line = self._replies.get(timeout=SECONDS)
        except (OSError, ValueError):             # it has ended, or was ended
            line = b""
        except Empty:
            raise self._ended(f"takes longer than {SECONDS:g} seconds and was stopped") from None
        except BaseException:                     # SIGTERM or Ctrl-C: the answer ends with the grader
            self.close()
            raise
        if not line.endswith(b"\n"):
            raise self._ended("sent more than it may" if line else "ended its process instead of returning a result")
        try:
            reply = parse_json(line, DataError, "The reply")
            said, fault, kind = (str(reply.get(key, "")) for key in ("printed", "fault", "kind"))
        except (DataError, AttributeError):
            raise self._ended("sent something other than its results") from None
        sys.stderr.write(said)
        if fault:
            found = getattr(builtins, kind, None)
            is_exception = isinstance(found, type) and issubclass(found, BaseException)
            raise AnswerError(" ".join(fault.split())[:1000], found if is_exception else None)
        return dict(reply)

    def _ended(self, why: str) -> AnswerError:
        self.close()
        return AnswerError(f"{self.name} {why}.")


def _receive(source: IO[bytes], replies: "Queue[bytes]") -> None:
    """Lines of bounded length, then an empty one."""
    with source:
        while line := source.readline(_LARGEST_REPLY):
            replies.put(line)
    replies.put(b"")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the process and all that it started."""
    if os.name == "posix":
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            process.kill()
    else:
        process.kill()
    process.wait()
    assert process.stdin is not None
    with suppress(OSError), broken_pipes_raise():         # what was still to be written
        process.stdin.close()


def _encoded(value: Any) -> Any:
    """An argument as JSON."""
    if isinstance(value, np.ndarray | np.generic):
        file = io.BytesIO()
        np.save(file, value, allow_pickle=False)
        return {"npy": b64encode(file.getvalue()).decode("ascii")}
    if isinstance(value, np.random.Generator):
        return {"generator": _encoded(value.bit_generator.state)}
    if isinstance(value, Mapping):
        return {name: _encoded(part) for name, part in value.items()}
    return {"kept": True} if isinstance(value, KeptCache) else value


def _decoded(value: Any) -> Any:
    """A result: plain numbers and arrays. Of any other object only the name of its type is known."""
    if "npy" in value:
        array = np.load(io.BytesIO(b64decode(value["npy"], validate=True)), allow_pickle=False)
        return array[()] if value["scalar"] is True else array
    if "dtype" in value:
        return np.empty([min(int(n), 100) for n in value["shape"][:8]] if len(value["shape"]) < 3 else (), object)
    if "value" in value:
        if not (value["value"] is None or type(value["value"]) in (bool, int)):
            raise ValueError
        return value["value"]
    if "float" in value:
        return float.fromhex(value["float"])
    for name, kind in (("tuple", tuple), ("list", list)):
        if name in value:
            return kind(_decoded(part) for part in value[name])
    if "dict" in value:
        return {str(name): _decoded(part) for name, part in value["dict"].items()}
    return type(str(value["type"])[:60], (), {})()
