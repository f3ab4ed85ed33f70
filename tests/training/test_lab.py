"""The laboratory: runs are compared, and not run twice."""

import pytest

from mini_bert import ConfigError
from mini_bert.report.lab_page import lab_page
from mini_bert.lab.experiment import Experiment
from mini_bert.lab.runs import perform, summary

PLAN = {"config": "debug", "seeds": [0, 1], "runs": {"low": ["training.learning_rate=1e-5"], "high": []},
        "set": ["model.vocab_size=60", "training.steps=10", "training.eval_every=5", "training.learning_rate=1e-2"]}


def test_runs_are_compared_and_done_once(corpus, tmp_path):
    plan = Experiment.from_dict(PLAN)
    curves = perform(plan, corpus.directory, tmp_path)
    assert [(curve.name, curve.seed) for curve in curves] == [("low", 0), ("low", 1), ("high", 0), ("high", 1)]
    assert all(len(curve.losses) == len(curve.tokens) == 2 for curve in curves)
    rows = summary(curves)
    assert [row["name"] for row in rows] == ["high", "low"]
    assert rows[0]["seeds"] == 2
    assert rows[0]["lowest"] <= rows[0]["loss"] <= rows[0]["highest"]
    html = lab_page("An experiment", curves, rows)
    assert html.count("<polyline") == 4               # two runs, over tokens and over time
    assert html.count("<polygon") == 4                # each with the band of its seeds
    assert f"{rows[0]['loss']:.4f}" in html
    files = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("model.safetensors")}
    assert perform(plan, corpus.directory, tmp_path) == curves
    assert files == {file: file.stat().st_mtime_ns for file in tmp_path.rglob("model.safetensors")}


@pytest.mark.parametrize(("content", "words"), [
    ({}, "no runs"), ({"runs": {"a": []}, "seed": 1}, "unknown key 'seed'"), ({"runs": {"a/b": []}}, "directory"),
    ({"runs": {"a": ["training.stepz=1"]}}, "nearest valid key"), ([], "no runs")])
def test_a_wrong_experiment_is_refused_at_once(content, words):
    with pytest.raises(ConfigError, match=words):
        Experiment.from_dict(content)
