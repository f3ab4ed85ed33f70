"""A sample of the torture chamber; `make torture` runs all of it."""

import os
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from chamber import Trial, attempts, scratch
from commands import CACHING, COMMANDS, READING
from typer.main import get_group

from mini_bert.cli.app import app

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")         # of fork, in newer versions of Python
def test_a_crash_a_full_disk_a_kill_or_a_race_leaves_the_old_state_or_the_new_one(command, monkeypatch):
    seed = int.from_bytes(os.urandom(4), "little")
    with TemporaryDirectory(dir=scratch(), prefix="torture-") as folder:
        monkeypatch.setenv("MINI_BERT_CACHE", f"{folder}/cache")
        trial = Trial(command, Path(folder) / "trial")
        problems = [f"seed {seed}: {kind} {number}: {problem}" for kind, number, problem
                    in attempts(trial, Random(seed), points=1 if command.slow else 3, kills=0 if command.slow else 2,
                                races=0 if command.slow else 1) if problem is not None]
    assert problems == []


def test_every_command_is_tortured_or_known_to_write_nothing():
    found: set[str] = set()
    for name, command in get_group(app).commands.items():
        found |= {f"{name} {part}" for part in command.commands} if hasattr(command, "commands") else {name}
    tortured = {command for command in found if any(known.name.startswith(command) for known in COMMANDS)}
    assert found - tortured == (READING | CACHING) - tortured
    assert not tortured & (READING - {"explore"})             # which writes with --export
