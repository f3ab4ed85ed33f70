"""A file of one's own at the command line: short errors, child processes, hints that repeat it, names that clash."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

import mini_bert.cli.train.pretrain  # noqa: F401  (its words are registered before any test restores the registry)
from mini_bert import CheckpointError, load
from mini_bert.cli.app import app
from mini_bert.core.registry import import_options, restored_registry
from mini_bert.pretrained import model_directory
from mini_bert.templates import KINDS, template

SIZES = {"num_layers": 1, "num_heads": 2, "hidden_size": 16, "intermediate_size": 32, "max_seq_length": 16,
         "vocab_size": 100}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with restored_registry():
        yield


def written(tmp_path, right="", wrong=""):
    text = template("activation", "mine")
    assert right in text
    (tmp_path / "mine.py").write_text(text.replace(right, wrong) if right else text)
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"model": {**SIZES, "activation": "mine"}, "training": {}}))


def command_line(*arguments, **environment):
    return subprocess.run([sys.executable, "-m", "mini_bert", *arguments], capture_output=True, text=True,
                          env={**os.environ, **environment}, check=False)


def test_an_error_in_a_variant_shows_its_own_lines_alone(tmp_path):
    written(tmp_path, "def mine_forward(x, out=None):", "def mine_forward(x, out=None):\n    x = helper(x)")
    (tmp_path / "beside.py").write_text("def helper(x):\n    return x.no_such_thing\n")
    (tmp_path / "mine.py").write_text(f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nfrom beside import helper\n"
                                      + (tmp_path / "mine.py").read_text())
    done = command_line("gradcheck", "mine", "--import", "mine.py")
    assert done.returncode == 1
    first, *lines, last = done.stderr.splitlines()
    assert first == "mini-bert: AttributeError: 'numpy.ndarray' object has no attribute 'no_such_thing'"
    assert [line.split(", line")[0].strip() for line in lines] == ["mine.py", "beside.py"]
    assert lines[0].endswith("in mine_forward: x = helper(x)")
    assert lines[1].endswith("line 2, in helper: return x.no_such_thing")
    assert "MINI_BERT_TRACEBACK" in last
    whole = command_line("gradcheck", "mine", "--import", "mine.py", MINI_BERT_TRACEBACK="1")
    assert "Traceback" in whole.stderr


def test_an_error_that_a_variants_result_causes_names_the_file(tmp_path):
    written(tmp_path, "def mine_forward(x, out=None):", "def mine_forward(x, out=None):\n    return None")
    done = command_line("gradcheck", "mine", "--import", "mine.py")
    assert done.returncode == 1
    assert "No line of mine.py was running: perhaps a method is missing, or returned something of" in done.stderr
    assert len(done.stderr.splitlines()) == 4


def test_child_processes_know_the_words_too(tmp_path):
    written(tmp_path)
    done = command_line("memory", "config.yaml", "-b", "4", "--import", "mine.py", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["measured"] > 0
    done = command_line("--import", "mine.py", "bench", "train", "-c", "config.yaml", "-b", "4", "--steps", "5",
                        "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["contestants"]["mini-bert"]["steps"] == 5


def test_the_hint_to_continue_repeats_the_file(tmp_path):
    written(tmp_path)
    (tmp_path / "text.txt").write_text("\n\n".join(["the cat sat on the mat and ran."] * 40))
    run = CliRunner().invoke
    for command in (["tokenizer", "train", "text.txt", "--out", "vocab", "--vocab-size", "60"],
                    ["data", "prepare", "text.txt", "--tokenizer", "vocab", "--out", "corpus"]):
        assert run(app, command).exit_code == 0, command
    train = ["pretrain", "-c", "config.yaml", "-d", "corpus", "-o", "run", "--steps", "2", "--set",
             "training.batch_size=2", "--import", "mine.py", "--quiet"]
    assert run(app, train).exit_code == 0
    assert "continue it with: mini-bert resume run --import mine.py." in str(run(app, train).exception)
    assert import_options() == " --import mine.py"
    assert load("run").source == model_directory("run") == Path("run/final")       # nothing was held out
    assert run(app, ["score", "the cat sat on the mat.", "--model", "run", "--json"]).exit_code == 0


def test_a_run_is_opened_as_its_best_or_else_its_final_model(tmp_path):
    folder = tmp_path / "run"
    (folder / "checkpoints" / "step-3").mkdir(parents=True)
    assert model_directory(folder) == folder                              # not a run
    (folder / "config.yaml").write_text("model: {}")
    with pytest.raises(CheckpointError, match=r"The run .*run has no model yet, neither best nor final: continue"):
        model_directory(folder)
    for name in ("final", "best"):
        (folder / name).mkdir()
        assert model_directory(folder) == folder / name
        assert model_directory(str(folder)) == folder / name
    (tmp_path / "fit.json").write_text("{}")
    assert model_directory(tmp_path) == folder / "best"
    (folder / "config.json").write_text("{}")
    assert model_directory(folder) == folder                              # a model, whatever is beside it


@pytest.mark.parametrize(("name", "said"), [
    ("numpy", "'numpy' is the name of a Python module"), ("json", "name of a Python module"),
    ("lambda", "'lambda' is a Python keyword"), ("match", "is a Python keyword"),
    ("gelu", "'gelu' among the words of activation already"), ("Mine", "use small letters")])
def test_a_name_that_clashes_is_refused(tmp_path, name, said):
    assert said in str(CliRunner().invoke(app, ["new", "variant", name]).exception)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "optimiser"])
def test_the_command_that_proves_a_new_variant_checks_its_word(kind):
    made = CliRunner().invoke(app, ["new", "variant", "mine", "--kind", kind])
    command = made.stdout.split("Check it: mini-bert ")[1].split()
    report = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert report["passed"]
    assert all("mine" in result["subject"] for result in report["results"])
