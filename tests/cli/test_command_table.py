"""The table of commands: what --help lists, which options each command has, and what each imports."""

import os
import re
import subprocess
import sys

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from mini_bert.cli.app import COMMANDS, app

NAMES = [name for group in COMMANDS.values() for name in group]
# the commands that draw random numbers; no other command has --seed
SEEDED = {
    "selftest", "gradcheck", "exercise check", "exercise run", "fit", "data show", "pretrain", "finetune", "find-lr",
    "overfit", "evaluate", "probe", "blimp", "agreement", "facts", "similarity", "explore", "plot", "memory",
    "bench train", "bench profile", "bench scaling", "generate", "timeline"}


def commands() -> dict:
    """Every command by its words, such as `data prepare`."""
    found = {}
    for name, command in get_command(app).commands.items():
        subcommands = getattr(command, "commands", None)
        found |= {name: command} if subcommands is None else {
            f"{name} {inner}": subcommand for inner, subcommand in subcommands.items()}
    return found


def options(command) -> set[str]:
    return {option for parameter in command.params for option in parameter.opts}


def python(script: str) -> str:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout


def test_every_command_takes_json_and_quiet_and_shows_an_example():
    for name, command in commands().items():
        assert {"--json", "--quiet"} <= options(command), name
        assert f"mini-bert {name}" in command.help, name


def test_only_commands_that_draw_random_numbers_take_a_seed():
    seeded = {name for name, command in commands().items() if "--seed" in options(command)}
    assert seeded == SEEDED


def test_help_lists_every_command_in_its_group():
    shown = CliRunner().invoke(app, ["--help"]).output
    panels = {panel.split(" ", 1)[0]: panel for panel in shown.split("╭─ ")[1:]}
    for group, entries in COMMANDS.items():
        for name, entry in entries.items():
            assert f"│ {name} " in panels[group]
            assert entry[1].replace("\\", "") in panels[group], "the summary must fit in one line"


def test_help_imports_no_command():
    script = ("import sys; from typer.testing import CliRunner; from mini_bert.cli.app import app;"
              "assert 'resume' in CliRunner().invoke(app, ['--help']).output;"
              "print([name for name in sys.modules if name.startswith('mini_bert.cli.') and name.count('.') > 2])")
    assert python(script).strip() == "[]"


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_help(name):
    result = CliRunner().invoke(app, [name, "--help"])
    assert result.exit_code == 0, result.output
    assert f"mini-bert {name}" in result.output.replace("root", "mini-bert")


def test_a_misspelt_command_suggests_the_right_one():
    result = CliRunner().invoke(app, ["fillmask"])
    assert result.exit_code == 2
    assert "fill-mask" in result.output


def test_fill_mask_imports_no_code_of_other_commands():
    others = ["mini_bert.training.trainer", "mini_bert.evaluation.suite.suite", "mini_bert.evaluation.probes.probing"]
    shown = python("import sys; from mini_bert.cli import main; sys.argv = ['mini-bert', 'fill-mask', 'A [MASK].', "
                   "'-q']\ntry:\n    main()\nexcept SystemExit:\n    pass\n"
                   f"print([name for name in sys.modules if name in {others}])")
    assert shown.splitlines()[-1] == "[]"


def test_the_bare_command_shows_three_commands_and_where_to_go_on():
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 0
    assert result.output.count("\n  mini-bert ") == 3
    assert all(len(line) <= 80 for line in result.output.splitlines())
    known = commands().keys() | set(get_command(app).commands)
    assert {line.split()[1] for line in result.output.splitlines() if line.startswith("  mini-bert")} <= known


@pytest.mark.parametrize("width", ["80", "100"])
def test_flags_have_no_type_and_paragraphs_fill_the_width(width):
    shown = subprocess.run([sys.executable, "-m", "mini_bert", "embed", "--help"], capture_output=True, text=True,
                           env={**os.environ, "COLUMNS": width}, check=True).stdout
    assert "<bool>" not in shown + CliRunner().invoke(app, ["--help"]).output
    assert "<bool>" not in CliRunner().invoke(app, ["data", "show", "--help"]).output
    for name in ("plot", "pretrain", "predict", "generate"):          # nor do values have types of Python
        assert not re.search(r"<(int|float|str|list|path)", CliRunner().invoke(app, [name, "--help"]).output)
    lines = [line.strip() for line in shown.splitlines()]
    first = next(line for line in lines if line.startswith("Every line gets a vector"))
    assert len(first) > int(width) * 0.8                      # not broken where the docstring is


@pytest.mark.parametrize(("typed", "offered"), [
    ("mini-bert fi", {"fit", "finetune", "fill-mask", "find-lr"}), ("mini-bert exercise st", {"start"}),
    ("mini-bert embed --ba", {"--batch-size"}), ("mini-bert embed --model mi", {"mini"}),
    ("mini-bert pretrain --config mini-r", {"mini-relative", "mini-rope"})])
def test_the_shell_completes_commands_options_and_names(typed, offered):
    environment = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1),
                   "_MINI_BERT_COMPLETE": "complete_bash"}
    done = subprocess.run([sys.executable, "-m", "mini_bert"], env={**os.environ, **environment}, capture_output=True,
                          text=True, check=False)
    assert set(done.stdout.split()) == offered


def test_help_needs_no_numpy():
    shown = python("import sys; from typer.testing import CliRunner; from mini_bert.cli.app import app;"
                   "CliRunner().invoke(app, ['--help']); print('numpy' in sys.modules)")
    assert shown.strip() == "False"
