"""Runs the examples of one page in order, as a reader would, in the current directory: `python run_page.py PAGE`.

The `python` blocks of a page share one namespace, and run in this process; a `bash` block runs in a shell, and what it
changes of the directory and of the environment stays, as in one terminal. What a block
prints must equal the `text` block that follows it, where there is one. A block with the comment `not run: REASON`
above it is left out.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import NamedTuple

FENCE = re.compile(r"(?:<!-- not run: (?P<reason>[^\n]+?) -->\n)?^(?P<indent> *)```(?P<language>\w+)[^\n]*\n"
                   r"(?P<body>.*?)^(?P=indent)```$(?:\s*^(?P=indent)```text\n(?P<output>.*?)^(?P=indent)```$)?",
                   re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    language: str
    body: str
    output: str | None
    reason: str | None
    line: int


def blocks_of(page: Path) -> list[Block]:
    """The `python` and `bash` blocks of a page."""
    text = page.read_text("utf-8")
    return [Block(found["language"], _dedent(found["body"], found["indent"]),
                  None if found["output"] is None else _dedent(found["output"], found["indent"]),
                  found["reason"], text.count("\n", 0, found.start("language")) + 1)
            for found in FENCE.finditer(text) if found["language"] in ("python", "bash")]


def _dedent(text: str, indent: str) -> str:
    return re.sub(rf"^{indent}", "", text, flags=re.MULTILINE)


def run_python(body: str, names: dict[str, object], where: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(body, where, "exec"), names)
    return printed.getvalue()


def run_bash(body: str) -> str:
    with tempfile.NamedTemporaryFile() as left:
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", f"{body}\nenv -0 > {left.name}"], capture_output=True,
                              text=True, check=False, timeout=300)
        if done.returncode:
            raise RuntimeError(f"the shell ended with {done.returncode}\n{done.stdout}{done.stderr}")
        found = dict(entry.split("=", 1) for entry in left.read().decode().split("\0") if entry)
    os.environ.clear()
    os.environ.update(found)
    os.chdir(found["PWD"])
    return done.stdout


def run_page(page: Path) -> str | None:
    """What went wrong first, or None."""
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks_of(page):
        where = f"{page.name}, line {block.line}"
        if block.reason:
            continue
        try:
            printed = run_python(block.body, names, where) if block.language == "python" else run_bash(block.body)
        except Exception:
            return f"{where}: {traceback.format_exc()}"
        if block.output is not None and _plain(printed) != _plain(block.output):
            return f"{where}: the page says\n{block.output}\nbut the block prints\n{printed}"
    return None


def _plain(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


if __name__ == "__main__":
    warnings.simplefilter("error")
    sys.path.insert(0, "")                          # a page may write a module and import it
    sys.exit(run_page(Path(sys.argv[1]).resolve()))
