"""timeline.json: the figures of a run's snapshots, by panels and lines. It is light, a few tens of kilobytes.

    {"format": 1, "run": "mini", "parameters": 4498880, "steps": [...], "tokens": [...],
     "panels": [{"name": "blimp", "title": "Grammar (BLiMP)", "unit": "share", "apart": false, "columns": {...},
                 "lines": [{"name": "BLiMP", "values": [...], "low": [...], "high": [...],
                            "levels": {"chance": 0.5}}]}],
     "sizes": {...}, "seed": 0, "notes": [...]}

Every list has one number for each snapshot, null where there is none.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any

from ...errors import DataError
from ...files import write_files
from ...readers import read_json

FILE, FORMAT = "timeline.json", 1
_DIGITS = 5
_MOST = 1000                              # snapshots, panels, or lines of a panel that are read
Values = list[float | None]


@dataclass(frozen=True)
class Line:
    """One figure over the run, its intervals where it has them, and what it is held against."""

    name: str
    values: Values
    low: Values
    high: Values
    levels: dict[str, float]


@dataclass(frozen=True)
class Panel:
    """Lines of one entry."""

    name: str
    title: str
    unit: str
    apart: bool
    columns: dict[str, str]               # of a table: heading -> line
    lines: list[Line]


@dataclass(frozen=True)
class Timeline:
    """The figures of a run's snapshots."""

    run: str
    parameters: int
    steps: list[int]
    tokens: list[int]
    panels: list[Panel]
    sizes: dict[str, Any]
    seed: int
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = _rounded({"format": FORMAT, **asdict(self)})
        return found

    def save(self, folder: Path) -> Path:
        """Write timeline.json, whole or not at all."""
        content = json.dumps(self.to_dict(), separators=(",", ":"), allow_nan=False)
        write_files(folder, {FILE: content.encode() + b"\n"})
        return folder / FILE


def _rounded(value: Any) -> Any:
    """Five digits, and null for what is not finite."""
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if isfinite(value) else None
    return value


# ---------------------------------------------------------------- reading

def timeline_file(place: str | PathLike[str]) -> Path:
    """The file of a run or a fit, or the file itself."""
    path = Path(place)
    if path.is_dir():
        return next((folder / FILE for folder in (path, path / "run") if (folder / FILE).is_file()), path / FILE)
    return path


def read_timeline(place: str | PathLike[str]) -> Timeline:
    """The timeline in the directory of a run, or in a file."""
    file = timeline_file(place)
    absent = f"There is no {file}; measure the snapshots of a run with mini-bert timeline RUN."
    found = read_json(file, DataError, absent=absent)
    try:
        if found.get("format") != FORMAT:
            raise ValueError(f"its format is {str(found.get('format'))[:20]}, and this version reads {FORMAT}")
        steps = _numbers(found["steps"])
        tokens = _numbers(found["tokens"], len(steps))
        panels = [_panel(panel, len(steps)) for panel in _list(found["panels"])]
        notes = [_text(note) for note in _list(found.get("notes", []))]
        return Timeline(_text(found["run"]), _whole(found["parameters"]), [_whole(step) for step in steps],
                        [_whole(number) for number in tokens], panels, dict(found.get("sizes", {})),
                        _whole(found.get("seed", 0)), notes)
    except KeyError as error:
        raise DataError(f"{file} is not a timeline: it has no {error}.") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise DataError(f"{file} is not a timeline: {error}.") from None


def _panel(found: Mapping[str, Any], snapshots: int) -> Panel:
    lines = [_line(line, snapshots) for line in _list(found["lines"])]
    columns = {_text(heading): _text(line) for heading, line in dict(found.get("columns", {})).items()}
    return Panel(_text(found["name"]), _text(found["title"]), _text(found["unit"]), bool(found.get("apart")), columns,
                 lines)


def _line(found: Mapping[str, Any], snapshots: int) -> Line:
    low, high = (_numbers(found.get(key, [None] * snapshots), snapshots) for key in ("low", "high"))
    levels = {_text(name): value for name, value in dict(found.get("levels", {})).items()
              if _numbers([value])[0] is not None}
    return Line(_text(found["name"]), _numbers(found["values"], snapshots), low, high, levels)


def _list(found: Any) -> list[Any]:
    if not isinstance(found, list) or len(found) > _MOST:
        raise ValueError(f"{str(found)[:60]} is not a list of at most {_MOST:,}")
    return found


def _text(found: Any) -> str:
    if not isinstance(found, str):
        raise ValueError(f"{str(found)[:60]} is not text")
    return found[:200]


def _whole(found: Any) -> int:
    if type(found) is not int or not 0 <= found < 1 << 63:
        raise ValueError(f"{str(found)[:60]} is not a whole number")
    return found


def _numbers(found: Any, count: int | None = None) -> Values:
    numbers: Sequence[Any] = _list(found)
    for number in numbers:
        if number is not None and (isinstance(number, bool) or not isinstance(number, int | float)
                                   or not abs(number) < 1e30):
            raise ValueError(f"{str(number)[:60]} is not a number")
    if count is not None and len(numbers) != count:
        raise ValueError(f"it has {count} snapshots and a list of {len(numbers)}")
    return list(numbers)
