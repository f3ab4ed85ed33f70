"""The README and the tutorials, followed literally: each in an empty folder, with nothing but an installed Mini-BERT.

`make first-steps` makes a new environment for it and names it in NEW_ENVIRONMENT; otherwise it is that of the tests.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from run_page import blocks_of
from test_blocks import IN_EMPTY_FOLDERS

ROOT = Path(__file__).parents[2]
PAGES = sorted(page for page in IN_EMPTY_FOLDERS if blocks_of(ROOT / page))


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    """As a reader has it: no path to the clone, and first of all commands those of the environment."""
    found = {name: value for name, value in environment.items() if name not in ("VIRTUAL_ENV", "NEW_ENVIRONMENT")}
    if new := os.environ.get("NEW_ENVIRONMENT"):
        found.pop("PYTHONPATH", None)
        found["PATH"] = f"{new}/bin{os.pathsep}{found['PATH']}"
    return found


def python() -> str:
    new = os.environ.get("NEW_ENVIRONMENT")
    return f"{new}/bin/python" if new else sys.executable


@pytest.mark.parametrize("page", PAGES)
def test_a_page_can_be_followed_in_an_empty_folder(page: str, tmp_path: Path, environment: dict[str, str]):
    (tmp_path / "empty").mkdir()
    done = subprocess.run([python(), str(Path(__file__).with_name("run_page.py")), str(ROOT / page)], check=False,
                          cwd=tmp_path / "empty", env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


def next_commands() -> list[str]:
    """What `make quickstart` prints at its end."""
    recipe = re.search(r"^quickstart:.*?\n\n", (ROOT / "Makefile").read_text("utf-8"), re.DOTALL | re.MULTILINE)[0]
    printed = [line.replace('\\"', '"') for line in re.findall(r'"((?:[^"\\]|\\.)*)"', recipe)]
    return [line.strip() for line in printed[printed.index("Next:") + 1 :]]


def test_the_commands_that_quickstart_prints_last_work(tmp_path: Path, environment: dict[str, str]):
    activate, explore, practise = next_commands()
    assert activate == "source $(VENV)/bin/activate"
    line = f"{explore} --export page.html && {practise} && ls sentences.txt"
    subprocess.run(["bash", "-euc", line], cwd=tmp_path, env=environment, check=True, capture_output=True)
    assert (tmp_path / "page.html").exists()
