"""selftest, gradcheck, config, presets and --version, as a user or a script calls them."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from mini_bert.cli.app import app
from mini_bert.cli.output import Output
from mini_bert.core.gradcheck import TOLERANCE

runner = CliRunner()


def mini_bert(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "mini_bert", *arguments], capture_output=True, text=True,
                          check=False)


def test_selftest_passes_and_lists_its_checks():
    done = mini_bert("selftest", "--json")
    assert done.returncode == 0
    report = json.loads(done.stdout)
    assert report["passed"]
    assert [test["name"] for test in report["tests"]] == [
        "config", "parameters", "forward", "loss", "backward", "step", "memory", "gradients",
        "formulas"]
    assert "4,498,880" in report["tests"][1]["detail"]


def test_selftest_fails_if_a_backward_is_wrong(monkeypatch):
    from mini_bert.core.modules.norms.layernorm import LayerNorm

    right = LayerNorm.backward
    monkeypatch.setattr(LayerNorm, "backward", lambda *arguments: -right(*arguments))
    result = runner.invoke(app, ["selftest", "--json"])
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert not report["passed"]
    assert not next(test for test in report["tests"] if test["name"] == "gradients")["passed"]


def test_gradcheck_covers_operations_and_models():
    result = runner.invoke(app, ["gradcheck", "--json"])
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert report["failed"] == 0
    assert report["checked"] == len(report["results"]) > 400
    assert report["worst"]["error"] <= TOLERANCE == report["tolerance"]
    subjects = {entry["subject"] for entry in report["results"]}
    assert {"linear", "layernorm", "softmax", "relu", "gelu", "gelu_tanh", "dropout", "embedding", "attention",
            "cross_entropy"} <= subjects
    checked_for = " ".join(subjects)
    assert all(preset in checked_for for preset in ("mini", "larger", "bert-tiny", "bert-base", "bert-large"))


def test_gradcheck_checks_only_the_named_operations():
    result = runner.invoke(app, ["gradcheck", "softmax", "relu", "--json"])
    assert {entry["subject"] for entry in json.loads(result.stdout)["results"]} == {"softmax", "relu"}


@pytest.mark.parametrize("wrong", ["sign", "nan"])
def test_gradcheck_fails_if_a_backward_is_wrong(monkeypatch, wrong):
    import mini_bert.core.ops.softmax as softmax

    right = softmax.softmax_backward
    factor = -1 if wrong == "sign" else float("nan")
    monkeypatch.setattr(softmax, "softmax_backward", lambda dp, p: factor * right(dp, p))
    result = runner.invoke(app, ["gradcheck", "softmax", "--json"])
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert not report["passed"]
    assert report["failed"] > 0
    assert runner.invoke(app, ["gradcheck", "softmax"]).exit_code == 1


@pytest.mark.parametrize(("arguments", "words"), [
    (("gradcheck", "sofmax"), ["sofmax", "softmax"]),
    (("gradcheck", "adamw"), ["'adamw' is a word of the slot optimiser", "no gradient"]),
    (("config", "minni"), ["minni", "mini"]),
    (("config", "absent.yaml"), ["absent.yaml"]),
])
def test_an_invalid_argument_is_one_sentence_and_exit_code_2(arguments, words):
    done = mini_bert(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stderr
    assert all(word in done.stderr for word in words)


def test_config_shows_sizes_parameters_and_memory():
    report = json.loads(runner.invoke(app, ["config", "larger", "--batch-size", "8", "--json"]).stdout)
    assert report["parameter_count"] == 49_137_488 == sum(entry["numbers"] for entry in report["parameters"])
    assert report["config"]["vocab_size"] == 50_000
    memory = report["training_bytes"]
    assert memory["total"] == sum(size for purpose, size in memory.items() if purpose != "total")
    shown = runner.invoke(app, ["config"]).stdout
    assert "4,498,880" in shown
    changed = json.loads(runner.invoke(app, ["config", "--set", "model.num_layers=1", "--json"]).stdout)
    assert changed["config"]["num_layers"] == 1
    assert "token_embeddings" in shown


def test_config_of_a_file(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("num_layers: 1\n")
    report = json.loads(runner.invoke(app, ["config", str(file), "--json"]).stdout)
    assert report["config"]["num_layers"] == 1


def test_presets_are_listed():
    report = json.loads(runner.invoke(app, ["presets", "--json"]).stdout)
    assert {entry["name"] for entry in report["presets"]} >= {
        "mini", "mini-rope", "small", "debug", "larger", "bert-tiny", "bert-base", "bert-large"}
    assert "4,498,880" in runner.invoke(app, ["presets"]).stdout


def test_version():
    assert mini_bert("--version").stdout.startswith("mini-bert 0.")


def test_json_has_null_for_numbers_that_are_not_finite(capsys):
    Output(as_json=True, quiet=False).result({"loss": float("nan"), "rows": [{"error": float("inf")}, (1.5, "a")]})
    assert json.loads(capsys.readouterr().out) == {"loss": None, "rows": [{"error": None}, [1.5, "a"]]}
