"""What a learner has done so far: a small file in the working folder."""

import json
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..files import write_files

FILE = "exercises.json"


class Progress:
    """Exercises that were passed, and how many hints of each were asked for."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._data = _read(folder / FILE)

    def passed(self, name: str) -> bool:
        return name in self._data["passed"]

    def hints(self, name: str) -> int:
        """How many hints of this exercise have been seen."""
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
    refusal = DataError(f"{path} is not a record of exercises; move it away, and a new one will be begun.")
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {"passed": [], "hints": {}}
    except (OSError, ValueError):
        raise refusal from None
    if not isinstance(data, dict) or not isinstance(data.get("passed"), list) \
            or not isinstance(data.get("hints"), dict) \
            or not all(isinstance(name, str) for name in data["passed"]) \
            or not all(isinstance(number, int) for number in data["hints"].values()):
        raise refusal
    return {"passed": data["passed"], "hints": data["hints"]}
