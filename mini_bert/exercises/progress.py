"""A learner's progress, in a small file in the working directory."""

import json
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..files import write_files
from ..readers import read_json_if_there

FILE = "exercises.json"


class ProgressFile:
    """The exercises that were passed, and the number of hints that were shown for each."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._data = _read(folder / FILE)

    def passed(self, name: str) -> bool:
        return name in self._data["passed"]

    def hints(self, name: str) -> int:
        """The number of hints shown for this exercise."""
        return int(self._data["hints"].get(name, 0))

    def note_passed(self, name: str) -> None:
        if not self.passed(name):
            self._data["passed"].append(name)
            self._write()

    def note_hint(self, name: str, number: int) -> None:
        if number > self.hints(name):
            self._data["hints"][name] = number
            self._write()

    def _write(self) -> None:
        write_files(self.folder, {FILE: json.dumps(self._data, indent=2).encode() + b"\n"})


def _read(path: Path) -> dict[str, Any]:
    refusal = DataError(f"{path} is not a progress file of exercises; move or delete it, and a new one is written.")
    try:
        data = read_json_if_there(path, DataError)
    except DataError:
        raise refusal from None
    if data is None:
        return {"passed": [], "hints": {}}
    if not isinstance(data.get("passed"), list) \
            or not isinstance(data.get("hints"), dict) \
            or not all(isinstance(name, str) for name in data["passed"]) \
            or not all(isinstance(number, int) for number in data["hints"].values()):
        raise refusal
    return {"passed": data["passed"], "hints": data["hints"]}
