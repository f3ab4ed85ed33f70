"""The process in which a learner's answer runs, apart from the grader: a script that `answer.py` starts.

It reads one JSON object a line from its standard input, loads the answer or calls one of its functions, and writes
one JSON object a line. Arrays are npy bytes in base64. Whatever the answer does here, it can do no more than send
numbers, or none: it has no access to the grader's memory, and the system limits its memory and time.
"""

import os
import sys

sys.path[:] = [place for place in sys.path if place != os.path.dirname(os.path.abspath(__file__))]   # noqa: PTH100, PTH120

import base64  # noqa: E402
import io  # noqa: E402
import json  # noqa: E402
import queue  # noqa: E402
import threading  # noqa: E402
import traceback  # noqa: E402
import warnings  # noqa: E402
from types import ModuleType  # noqa: E402
from typing import Any, BinaryIO  # noqa: E402

import numpy as np  # noqa: E402

MODULE = "mini_bert_exercise_answer"
MEMORY, SECONDS = 4 << 30, 120            # limits of the whole process: bytes of address space, seconds of processor
MOST_PRINTED = 20_000                     # characters of one call that are passed on


class Printed(io.TextIOBase):
    """What the answer prints, up to a limit."""

    def __init__(self) -> None:
        self.text = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.text += text[: MOST_PRINTED - len(self.text)]
        return len(text)


class Process:
    """The answer's module, the arrays it was given, and what its functions returned for later calls."""

    def __init__(self) -> None:
        self.module, self.source, self.name = ModuleType(MODULE), "", ""
        self.kept: Any = None
        self.printed = Printed()

    def handle(self, request: dict[str, Any]) -> dict[str, Any]:
        self.printed.text = ""
        sys.stdout = sys.stderr = self.printed
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")           # the grader reports NaN itself
                reply = self.load(request) if "source" in request else self.call(request)
        except BaseException as error:
            reply = {"fault": self.sentence(error), "kind": type(error).__name__}
        return {**reply, "printed": self.printed.text}

    def load(self, request: dict[str, Any]) -> dict[str, Any]:
        self.source, self.name = request["source"], request["name"]
        sys.modules[MODULE] = self.module                 # dataclasses look up their module there
        if request["folder"] is not None:
            sys.path.insert(0, request["folder"])
        exec(compile(self.source, self.name, "exec"), vars(self.module))
        return {}

    def call(self, request: dict[str, Any]) -> dict[str, Any]:
        found = vars(self.module).get(request["call"])
        if not callable(found):
            return {"fault": f"{self.name} has no function {request['call']}.", "kind": ""}
        arguments = [self.decoded(value) for value in request["arguments"]]
        options = {name: self.decoded(value) for name, value in request["options"].items()}
        made = found(*arguments, **options)
        if request["keep"] and isinstance(made, tuple) and len(made) == 2:
            self.kept, made = (made[1], arguments), (made[0], None)
        held = [*(self.kept[1] if self.kept is not None else []), *arguments]
        return {"result": encoded(made), "arguments": [encoded(value, 1) for value in held
                                                       if isinstance(value, np.ndarray)]}

    def decoded(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if "npy" in value:
            return np.load(io.BytesIO(base64.b64decode(value["npy"])), allow_pickle=False)
        if "generator" in value:
            generator = np.random.Generator(getattr(np.random, value["generator"]["bit_generator"])())
            generator.bit_generator.state = {name: self.decoded(part) for name, part in value["generator"].items()}
            return generator
        if "kept" in value:
            return self.kept[0]
        return {name: self.decoded(part) for name, part in value.items()}

    def sentence(self, error: BaseException) -> str:
        """The exception in one sentence, with the learner's line."""
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == self.name]
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


def encoded(value: Any, depth: int = 0) -> Any:
    """A result as JSON: arrays and numbers, in a tuple, list or dict at most; of anything else its type."""
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.hasobject:
            return {"dtype": "object", "shape": list(value.shape)}
        file = io.BytesIO()
        np.save(file, value, allow_pickle=False)
        return {"npy": base64.b64encode(file.getvalue()).decode("ascii"), "scalar": isinstance(value, np.generic)}
    if value is None or type(value) in (bool, int):
        return {"value": value}
    if type(value) is float:
        return {"float": value.hex()}
    if depth == 0 and isinstance(value, tuple | list) and len(value) <= 100:
        return {"tuple" if isinstance(value, tuple) else "list": [encoded(part, 1) for part in value]}
    if depth == 0 and isinstance(value, dict) and len(value) <= 100:
        return {"dict": {str(name): encoded(part, 1) for name, part in value.items()}}
    return {"type": type(value).__name__}


def limit() -> None:
    """Ask the system to bound this process; where it cannot, the grader's clock is what is left."""
    try:
        import resource
    except ImportError:       # Windows
        return
    for kind, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CPU, SECONDS), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (most, hard) if hard == resource.RLIM_INFINITY or most < hard else (hard, hard))


def receive(source: BinaryIO, requests: "queue.Queue[bytes]") -> None:
    """Pass requests on; when the grader has gone, so does this process, whatever the answer is doing."""
    end = os._exit
    for line in source:
        requests.put(line)
    end(1)


def main() -> None:
    source, target = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:       # noqa: PTH123
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)                                 # what is written past `print` does not reach the grader
    limit()
    requests: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=receive, args=(source, requests), daemon=True).start()
    process = Process()
    while True:
        target.write(json.dumps(process.handle(json.loads(requests.get()))).encode() + b"\n")
        target.flush()


if __name__ == "__main__":
    main()
