"""Every row of docs/equivalents.md is true: names on the right can be imported, commands and their options exist."""

import importlib
import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from mini_bert.cli.app import app

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "equivalents.md").read_text("utf-8")
ROWS = [row for row in re.findall(r"^\| (.+?) \| (.+) \|$", PAGE, re.MULTILINE) if row != ("original outline", "here")]
RIGHT = sorted({code for _, here in ROWS for code in re.findall(r"`([^`]+)`", here)})
NAMES = [code for code in RIGHT if re.fullmatch(r"(mini_bert|larger_bert)(\.\w+)+", code)]
COMMANDS = [code for code in RIGHT if code.startswith("mini-bert ")]
TARGETS = [code for code in RIGHT if code.startswith("make ")]


def imported(path: str) -> Any:
    """What a dotted path names: a module, or something in it."""
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for name in parts[length:]:
            found = getattr(found, name)
        return found
    raise ModuleNotFoundError(path)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_can_be_imported(name: str):
    assert imported(name) is not None


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_exists_with_its_options(line: str):
    command: Any = get_command(app)
    for word in line.split()[1:]:
        if word.startswith("--"):
            assert word in {option for parameter in command.params for option in parameter.opts}, f"{word} in {line}"
        elif hasattr(command, "commands"):
            assert word in command.commands, f"{word} in {line}"
            command = command.commands[word]


@pytest.mark.parametrize("target", TARGETS)
def test_a_make_target_exists(target: str):
    assert re.search(rf"^{target.split()[1]}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)


def test_the_page_has_rows_of_every_kind_and_says_nothing_twice():
    assert len(NAMES) > 50
    assert len(COMMANDS) > 25
    left = [outline for outline, _ in ROWS]
    assert len(left) == len(set(left))


def test_settings_of_a_config_exist():
    from mini_bert import TrainingConfig

    for code in RIGHT:
        if code.startswith("training."):
            assert hasattr(TrainingConfig(), code.removeprefix("training.")), code
