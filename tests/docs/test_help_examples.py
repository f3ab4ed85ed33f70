"""The examples of every --help run as they are printed, in the folder that `mini-bert new practice` makes."""

import importlib.util
import re
import signal
import subprocess
from functools import partial
from pathlib import Path

import pytest
from typer.main import get_command

from mini_bert.cli.app import app

# what is shortened: times, since nobody waits for a test; and what serves until Ctrl-C
SHORTER = {"--budget 10m": "--budget 1s", "fit letters/": "fit letters/ --config small"}
NEEDS = {"--format onnx": "onnx"}             # the package of an extra that `make parity` installs
SERVES = re.compile(r"mini-bert (explore (?!.*--export)|serve )")


def examples() -> dict[str, list[str]]:
    """Command -> its examples, in the order of the table of commands."""
    found = {}
    for name, command in get_command(app).commands.items():
        inner = getattr(command, "commands", None)
        for words, one in [(name, command)] if inner is None else [(f"{name} {n}", c) for n, c in inner.items()]:
            found[words] = re.findall(r"^Example: (.+)$", one.help or "", re.MULTILINE)
    return found


ALL = [example for found in examples().values() for example in found]
MAKERS = {made: example for example in ALL for made in re.findall(r"--out (\S+)", example)}


def before(example: str) -> list[str]:
    """The examples that make what this one uses."""
    makers = {MAKERS[word] for word in example.split() if word in MAKERS and f"--out {word}" not in example}
    return [step for maker in sorted(makers) for step in (*before(maker), maker)]


def test_every_command_has_an_example():
    assert [name for name, found in examples().items() if not found] == []


@pytest.mark.parametrize("example", ALL)
def test_an_example_of_help_succeeds(example: str, scratch: Path, environment: dict[str, str]):
    for words, package in NEEDS.items():
        if words in example and importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed; tests/parity/test_export.py covers it")
    for line in (*before(example), example):
        for long, short in SHORTER.items():
            line = line.replace(long, short)
        if SERVES.match(line):
            serve(line, scratch, environment)
            continue
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", line], cwd=scratch, env=environment, check=False,
                              capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{line}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"


def serve(line: str, folder: Path, environment: dict[str, str]) -> None:
    """Run a command that serves a page until Ctrl-C, which a process begun in the background would ignore."""
    quiet = " --no-browser" if "explore" in line else ""
    process = subprocess.Popen(["bash", "-c", f"exec {line}{quiet}"], cwd=folder, env=environment, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL))
    assert "http://" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode in (0, 130, -signal.SIGINT)
