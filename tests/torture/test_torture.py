"""A sample of the torture chamber; `make torture` runs all of it."""

import os
from multiprocessing import get_context

import pytest
from chamber import sample
from commands import CACHING, COMMANDS, COMPOSED, READING
from typer.main import get_group

from mini_bert.cli.app import app


@pytest.fixture(scope="module")
def chamber():
    """A process with nothing but the package in it: it forks a thousand times, and each fork copies what it holds."""
    with get_context("spawn").Pool(1) as pool:
        yield pool


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_a_crash_a_full_disk_a_kill_or_a_race_leaves_the_old_state_or_the_new_one(command, chamber):
    assert chamber.apply(sample, (command.name, int.from_bytes(os.urandom(4), "little"))) == []


def test_every_command_is_tortured_or_known_to_write_nothing():
    found: set[str] = set()
    for name, command in get_group(app).commands.items():
        found |= {f"{name} {part}" for part in command.commands} if hasattr(command, "commands") else {name}
    tortured = {command for command in found if any(known.name.startswith(command) for known in COMMANDS)}
    assert found - tortured == (READING | CACHING | COMPOSED) - tortured
    assert not tortured & (READING - {"explore"})             # which writes with --export
