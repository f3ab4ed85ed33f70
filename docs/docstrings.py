"""Docstrings are plain text with formulas, not Markdown: brackets and angles in them are to be read, not followed."""

import re
from pathlib import Path
from typing import Any

from griffe import Extension

CODE = re.compile(r"(^ {4}.*$|`[^`\n]*`)", re.MULTILINE)      # formulas are indented; names stand in backticks
READ = str.maketrans({"[": r"\[", "]": r"\]", "<": "&lt;"})


def plain(text: str) -> str:
    return "".join(part if CODE.fullmatch(part) else part.translate(READ) for part in CODE.split(text))


def indented(text: str, source: list[str]) -> str:
    """The text as it stands in `source`. Where all lines but the first are formulas, their indentation was lost."""
    base, *rest = (len(line) - len(line.lstrip()) for line in source if line.strip(' "'))
    lost = min(rest, default=base) - base
    first, *others = text.splitlines() or [""]
    return "\n".join([first, *(" " * lost + line if line else line for line in others)]) if lost > 0 else text


class PlainDocstrings(Extension):
    def on_object(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring and obj.docstring.lineno and isinstance(obj.filepath, Path):
            lines = obj.filepath.read_text("utf-8").splitlines()[obj.docstring.lineno - 1 : obj.docstring.endlineno]
            obj.docstring.value = plain(indented(obj.docstring.value, lines))
