"""The verbs: all are there, and each brings in no more code than it needs."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from mini_bert.cli.app import VERBS, app


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_explains_itself(verb):
    result = CliRunner().invoke(app, [verb, "--help"])
    assert result.exit_code == 0, result.output
    assert f"mini-bert {verb}" in result.output.replace("root", "mini-bert")


def test_a_misspelt_verb_is_met_with_the_right_one():
    result = CliRunner().invoke(app, ["fillmask"])
    assert result.exit_code == 2
    assert "fill-mask" in result.output


def test_filling_a_mask_does_not_wait_for_the_code_of_other_verbs():
    script = ("import sys; from mini_bert.cli import main; sys.argv = ['mini-bert', 'fill-mask', 'A [MASK].', '-q'];"
              "main()")
    others = ["mini_bert.training.trainer", "mini_bert.evaluation.suite.suite", "mini_bert.evaluation.probes.probing"]
    asked = (f"try:\n    {script}\nexcept SystemExit:\n    pass\n"
             f"print([name for name in sys.modules if name in {others}])")
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
