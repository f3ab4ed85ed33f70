"""A formula that is shown but wrong makes the gradient check fail, with a sentence that names it."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from mini_bert.checks.check_all import models_to_check
from mini_bert.checks.formulas import check_formulas
from mini_bert.cli.app import app
from mini_bert.core.modules.attention import self_attention
from mini_bert.core.ops.softmax import FORMULA as SOFTMAX
from mini_bert.core.registry import restored_registry
from mini_bert.templates import template


@pytest.fixture(autouse=True)
def clean_registry():
    with restored_registry():
        yield


@pytest.mark.parametrize(("name", "config"), models_to_check().items())
def test_every_formula_of_every_kind_of_model_is_true(name, config):
    results = list(check_formulas(name, config, seed=1))
    assert len(results) > 30
    assert not [result.sentence for result in results if not result.passed]


def checked(tmp_path, kind, right, wrong, *names):
    text = template(kind, "mine")
    assert right in text
    (tmp_path / "mine.py").write_text(text.replace(right, wrong))
    return CliRunner().invoke(app, ["--import", str(tmp_path / "mine.py"), "gradcheck", *names])


@pytest.mark.parametrize(("kind", "right", "wrong", "said"), [
    ("activation", '"max({0}, 0)^2"', '"max({0}, 0)^3"',
     "The formula mine, a = max(u, 0)^3, of activation: mine is wrong"),
    ("activation", "d{y} * 2 * max({0}, 0)", "d{y} * 3 * max({0}, 0)",
     "The formula mine, du = da * 3 * max(u, 0), of activation: mine is wrong"),
    ("activation", '"max({0}, 0)^2"', '"square({0})"',
     "cannot be evaluated for ffn_activation_0: The formula's function"),
    ("activation", '"max({0}, 0)^2"', '"max({0}, 0)^"', "cannot be evaluated"),
    ("score_term", "sum_ij(d{y} * {y})", "sum_ij(d{y})", "is wrong: its value differs from what the model computes for "
     "dmine_"),
    ("block", 'sum_of(3), (x, "attention_output", "ffn_output")', 'sum_of(2), (x, "attention_output")',
     "The formula sum, x_1 = x_0 + O, of block: mine is wrong"),
    ("block", '"ffn_output")', '"ffn_outputs")', "which the pass does not show")])
def test_a_wrong_formula_of_ones_own_file_fails_and_is_named(tmp_path, kind, right, wrong, said):
    found = checked(tmp_path, kind, right, wrong, "mine")
    assert found.exit_code == 1, found.output
    assert said in " ".join(found.output.split())


def test_right_formulas_of_ones_own_file_are_counted(tmp_path):
    found = checked(tmp_path, "activation", "mine", "mine", "mine", "--json")
    report = json.loads(found.stdout)
    assert found.exit_code == 0
    assert report["formulas"] > 80
    assert {"formulas", "formulas of gradients"} <= {result["case"] for result in report["results"]}


@pytest.mark.parametrize("wrong", [replace(SOFTMAX, forward="softmax({0} + {0})"),
                                   replace(SOFTMAX, inputs=("{y} * (d{y} - sum(d{y}))",))])
def test_a_wrong_formula_of_this_package_is_found(monkeypatch, wrong):
    monkeypatch.setattr(self_attention, "SOFTMAX", wrong)
    config = next(config for name, config in models_to_check().items() if "mini" in name)
    failed = [result for result in check_formulas("mini", config) if not result.passed]
    assert {result.gradient for result in failed} in ({"attention_weights_0", "attention_weights_1"},
                                                      {"dscores_0", "dscores_1"})
    assert all(result.sentence.startswith("The formula softmax, ") for result in failed)
