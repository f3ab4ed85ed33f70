"""The laboratory: runs are compared under one budget, and not run twice."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from mini_bert import CheckpointError, ConfigError, ModelConfig
from mini_bert.errors import DataError
from mini_bert.lab.comparison import compare
from mini_bert.lab.experiment import Experiment
from mini_bert.lab.outcomes import kept
from mini_bert.lab.ruler import Ruler, RulerSizes, Tuning
from mini_bert.lab.runs import final_settings, perform, run_directory, summary
from mini_bert.lab.step_times import relative_step_time
from mini_bert.report.lab_page import lab_page
from mini_bert.training.config import TrainingConfig
from mini_bert.training.update import Update

TINY = ["model.vocab_size=60", "model.max_seq_length=16"]
PLAN = {"config": "debug", "seeds": [0, 1], "runs": {"low": ["training.learning_rate=1e-5"], "high": []},
        "set": [*TINY, "training.steps=10", "training.eval_every=5", "training.learning_rate=1e-2"]}
SHORT = {"config": "debug", "set": [*TINY, "training.batch_size=4", "training.eval_sequences=8",
                                    "training.warmup_steps=2", "training.threads=1"]}


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("MINI_BERT_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Data for the ruler, in the words of the corpus."""
    made = tmp_path_factory.mktemp("eval")
    for name in ("blimp", "agreement", "sst2"):
        (made / name).mkdir()
    for paradigm, bad in (("order", "cat the sat on a mat"), ("word", "the cat sat away a mat")):
        pairs = [{"sentence_good": f"the cat sat on a mat {word}", "sentence_bad": f"{bad} {word}", "UID": paradigm,
                  "linguistics_term": paradigm, "field": "syntax"} for word in ("and", "who", "at")]
        (made / "blimp" / f"{paradigm}.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    (made / "agreement" / "verbs.text").write_text("the cat sat on a mat\nthe master ran away\n")
    (made / "agreement" / "verbs.gold").write_text("2\tsat\tran\t1\n2\tran\tsat\t0\n")
    rows = "".join(f"the cat {word} {n * 'and '}\t{label}\n" for n in range(12)
                   for word, label in (("sat", "1"), ("ran", "0")))
    for split in ("train", "dev"):
        (made / "sst2" / f"{split}.tsv").write_text(f"sentence\tlabel\n{rows}")
    return made


def small_ruler(folder: Path, data: Path | None, **more) -> Ruler:
    return Ruler(folder, data, sizes=RulerSizes(sequences=16, pairs=2, tunings=(Tuning(8, 1, 1),), stopping=4), **more)


def test_runs_are_compared_and_done_once(corpus, tmp_path):
    plan = Experiment.from_dict(PLAN)
    curves = perform(plan, corpus.directory, tmp_path)
    assert [(curve.name, curve.seed) for curve in curves] == [("low", 0), ("low", 1), ("high", 0), ("high", 1)]
    assert all(len(curve.losses) == len(curve.tokens) == 2 for curve in curves)
    rows = summary(curves)
    assert [row["name"] for row in rows] == ["high", "low"]
    assert rows[0]["seeds"] == 2
    assert rows[0]["lowest"] <= rows[0]["loss"] <= rows[0]["highest"]
    files = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("model.safetensors")}
    again = compare(plan, tmp_path, data=corpus.directory)
    assert again.curves == curves
    assert files == {file: file.stat().st_mtime_ns for file in tmp_path.rglob("model.safetensors")}
    html = lab_page("An experiment", again)
    assert html.count("<polyline") == 4               # two runs, over tokens and over time
    assert html.count("<polygon") == 4                # each with the band of its seeds
    assert f"{rows[0]['loss']:.4f}" in html
    changed = Experiment.from_dict({**PLAN, "runs": {"low": ["training.learning_rate=1e-4"]}})
    with pytest.raises(CheckpointError, match=r"low-0 was begun with training.learning_rate=1e-05"):
        perform(changed, corpus.directory, tmp_path)


def test_a_run_names_its_own_model_and_way_of_training():
    plan = Experiment.from_dict({"config": "mini", "set": ["training.batch_size=4"], "runs": {
        "mini": [], "model": ["model=mini-rope"], "both": ["config=mini-gpt", "training.batch_size=2"],
        "no training": ["config=mini-gated"], "training": ["training=mini-deep"]}})
    settings = {name: plan.settings(name, 3) for name in plan.runs}
    assert settings["model"][0].score_terms == "rotary"
    assert settings["model"][1] == settings["mini"][1] == settings["no training"][1]
    assert (settings["both"][1].objective, settings["both"][1].batch_size) == ("causal", 2)
    assert settings["training"][0] == settings["mini"][0]
    assert (settings["training"][1].steps, settings["training"][1].batch_size) == (25000, 4)
    assert {training.seed for _, training in settings.values()} == {3}


def test_a_budget_of_tokens_or_flops_is_the_same_for_every_model(corpus, tmp_path):
    runs = {"one": [], "two": ["model.num_layers=4"], "more": ["training.batch_size=8"],
            "grows": ["training.batch_size=4 -> 12"]}
    steps = {}
    for budget in ({"tokens": "2e3"}, {"flops": 3e7}):
        plan = Experiment.from_dict({**SHORT, **budget, "runs": runs})
        assert plan.budget is not None
        steps[next(iter(budget))] = [final_settings(plan, name, 0, corpus, tmp_path / plan.budget.kind)[1].steps
                                     for name in runs]
    one, two, more, grows = steps["tokens"]
    assert one == two == pytest.approx(2000 / (4 * 16), rel=0.3)
    assert more == pytest.approx(one / 2, abs=2)
    assert grows == pytest.approx(more, abs=2)        # on average it has as many
    one, two, more, grows = steps["flops"]
    assert two < 0.75 * one                           # more layers, fewer steps
    assert more == pytest.approx(one / 2, rel=0.1)


def test_a_run_of_equal_time_has_as_many_steps_as_its_measured_cost_allows(corpus, tmp_path, monkeypatch):
    measured: list[str] = []
    monkeypatch.setattr("mini_bert.lab.budget.relative_step_time",
                        lambda run, shared, corpus: measured.append(run[0].num_layers) or run[0].num_layers / 2)
    plan = Experiment.from_dict({**SHORT, "equal_time": 2e3, "runs": {"same": [], "deep": ["model.num_layers=4"]}})
    steps = {name: [final_settings(plan, name, seed, corpus, tmp_path)[1].steps for seed in (0, 1)]
             for name in plan.runs}
    layers = plan.shared_settings()[0].num_layers
    assert steps["deep"][0] == pytest.approx(steps["same"][0] * layers / 4, abs=1)
    assert all(first == second for first, second in steps.values())
    assert sorted(measured) == [layers, 4]            # once, and then read from the directory of the experiment


def test_relative_step_time_counts_the_steps_alone_and_by_turns(corpus, monkeypatch):
    """With a clock that advances by the tokens of a step."""
    clock, step = [0.0], Update.step

    def counted(self, batch, key, rate, measure=False):
        clock[0] += self.objective.tokens(batch)
        return step(self, batch, key, rate, measure)

    monkeypatch.setattr(Update, "step", counted)
    monkeypatch.setattr("mini_bert.lab.step_times.process_time", lambda: clock[0])
    shared = Experiment.from_dict({**SHORT, "steps": 20, "runs": {"one": []}}).shared_settings()
    assert relative_step_time(shared, shared, corpus) == 1
    assert relative_step_time((shared[0], replace(shared[1], batch_size=16)), shared, corpus) \
        == pytest.approx(4, rel=0.2)


def test_a_result_is_not_computed_again_after_its_run_has_been_removed(corpus, tmp_path):
    plan = Experiment.from_dict({**SHORT, "steps": 3, "runs": {"one": []}})
    first = compare(plan, tmp_path, data=corpus.directory)
    shutil.rmtree(run_directory(tmp_path, "one", 0))
    again = compare(plan, tmp_path, data=corpus.directory)
    assert again.curves == first.curves
    assert not run_directory(tmp_path, "one", 0).exists()
    other = Experiment.from_dict({**SHORT, "steps": 3, "runs": {"one": ["training.learning_rate=1e-4"]}})
    (failure,) = compare(other, tmp_path, data=corpus.directory).failures.values()
    assert "learning_rate=0.001 and not 0.0001" in failure
    file = next((tmp_path / "outcomes").iterdir())
    file.write_text(file.read_text().replace('"steps": 3', '"steps": 4'))
    (failure,) = compare(plan, tmp_path, data=corpus.directory).failures.values()
    assert "its digest differs" in failure


def test_a_result_that_is_older_than_a_setting_counts_if_the_setting_has_its_default(tmp_path):
    old = {"training": {"steps": 5}, "runs": {"model": {"num_layers": 2}}}
    assert kept(tmp_path, "one", old, lambda: {"loss": 1.0}) == {"loss": 1.0}
    now = {"training": {**TrainingConfig().to_dict(), "steps": 5},
           "runs": {"model": {**ModelConfig().to_dict(), "num_layers": 2}}}
    assert kept(tmp_path, "one", now, dict) == {"loss": 1.0}
    now["training"]["snapshots"] = 3
    with pytest.raises(CheckpointError, match="snapshots=0 and not 3"):
        kept(tmp_path, "one", now, dict)


def test_runs_of_an_experiment_keep_snapshots_only_if_it_asks_for_them():
    plan = Experiment.from_dict({"config": "mini", "runs": {"one": [], "two": ["training.snapshots=20"]}})
    assert [plan.settings(name, 0)[1].snapshots for name in plan.runs] == [0, 20]


def test_two_jobs_give_the_runs_and_figures_of_one(corpus, folder, tmp_path):
    plan = Experiment.from_dict({**SHORT, "steps": 3, "runs": {"masked": [], "causal": [
        "model.score_terms=causal", "training.objective=causal"]}})
    ruler = small_ruler(folder, corpus.directory, finetuning=False)
    said: list[str] = []
    found = [compare(plan, tmp_path / str(jobs), data=corpus.directory, ruler=ruler, jobs=jobs, say=said.append)
             for jobs in (2, 1)]
    weights = [[(tmp_path / jobs / f"{name}-0" / "final" / "model.safetensors").read_bytes() for name in plan.runs]
               for jobs in "21"]
    assert weights[0] == weights[1]
    assert [[row.outcomes[0].scores for row in one.rows] for one in found] == [
        [row.outcomes[0].scores for row in found[0].rows]] * 2
    assert found[0].baselines == found[1].baselines
    assert "masked, seed 0 begins" in said


def test_the_ruler_gives_every_model_the_figures_that_it_can_have(corpus, folder, tmp_path):
    plan = Experiment.from_dict({**SHORT, "steps": 1, "runs": {
        "masked": [], "causal": ["model.score_terms=causal", "training.objective=causal"],
        "permuted": ["model.position_embeddings=none", "model.score_terms=relative", "model.stack=two_stream",
                     "training.objective=permuted"]}})
    found = compare(plan, tmp_path, data=corpus.directory, ruler=small_ruler(folder, corpus.directory))
    assert found.failures == {}
    scores = {row.name: row.outcomes[0].scores for row in found.rows}
    there = {name: {figure for figure, value in of.items() if value is not None} for name, of in scores.items()}
    everywhere = {"blimp", "agreement", "sst2_8"}
    assert there == {"masked": {"loss", "mask_loss"} | everywhere, "causal": {"causal_loss"} | everywhere,
                     "permuted": {"mask_loss"} | everywhere}
    assert all(set(row.random) == {"sst2_8"} for row in found.rows)
    assert {name: set(of) for name, of in found.baselines.items()} == {
        "unigram": {"blimp", "agreement"}, "bigram": {"blimp", "agreement"}, "bag of words": {"sst2_8"}}
    assert "random weights" in lab_page("All", found)
    assert json.loads(json.dumps(found.to_dict()))["rows"][0]["figures"]["blimp"]["values"]


def test_a_failing_run_does_not_stop_the_others(corpus, tmp_path):
    plan = Experiment.from_dict({**SHORT, "steps": 4, "runs": {
        "bad": ["training.learning_rate=1e30", "training.max_bad_steps=1", "training.max_grad_norm=0"], "good": []}})
    found = compare(plan, tmp_path, data=corpus.directory)
    assert list(found.failures) == ["bad, seed 0"]
    assert [row.name for row in found.rows] == ["good"]


@pytest.mark.parametrize(("content", "words"), [
    ({}, "no runs"), ({"runs": {"a": []}, "seed": 1}, "unknown key 'seed'"), ({"runs": {"a/b": []}}, "directory"),
    ({"runs": {"a": ["training.stepz=1"]}}, "nearest valid key"), ([], "no runs"),
    ({"runs": {"a": []}, "steps": 5, "flops": 1e9}, "steps and flops; a budget is one of"),
    ({"runs": {"a": []}, "tokens": "many"}, "tokens must be a number"),
    ({"runs": {"a": []}, "budget": "soon"}, "not a length of time"),
    ({"runs": {"a": []}, "steps": 2.5}, "whole number"), ({"runs": {"a": []}, "seeds": [1, 1]}, "same seed twice"),
    ({"runs": {"a": ["training.steps=5"]}, "flops": 1e9}, "remove one of them"),
    ({"runs": {"a": ["training=mini-rope"]}}, "says nothing about training")])
def test_a_wrong_experiment_is_refused_at_once(content, words):
    with pytest.raises(ConfigError, match=words):
        Experiment.from_dict(content)


def test_what_cannot_be_run_or_measured_is_refused_before_the_first_run(corpus, folder, tmp_path):
    plan = Experiment.from_dict({**SHORT, "runs": {"good": [], "bad": ["training.objective=causal"]}})
    with pytest.raises(ConfigError, match="runs, bad: The objective causal needs"):
        perform(plan, corpus.directory, tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DataError, match=r"has no blimp/\*.jsonl"):
        Ruler(tmp_path)


def test_the_command_shows_rows_in_a_hundred_columns_and_refuses_options_without_meaning(corpus, folder, tmp_path,
                                                                                          monkeypatch):
    from typer.testing import CliRunner

    from mini_bert.cli.app import app

    monkeypatch.setenv("COLUMNS", "100")
    file = tmp_path / "plan.yaml"
    file.write_text(json.dumps({**SHORT, "steps": 1, "seeds": [0, 1], "runs": {"a longer name": []}}))
    given = ["lab", str(file), "-d", str(corpus.directory), "-o", str(tmp_path / "lab"), "--ruler", str(folder),
             "--no-finetuning"]
    shown = CliRunner().invoke(app, [*given, "--quiet"])
    assert shown.exit_code == 0, shown.output
    table = shown.output.split("held-out: loss")[0]
    assert max(map(len, table.splitlines())) <= 100
    assert table.splitlines()[1].count("±") == 4                     # two losses, BLiMP and agreement
    found = json.loads(CliRunner().invoke(app, [*given, "--json"]).stdout)
    assert found["rows"][0]["seeds"] == 2
    assert json.loads((tmp_path / "lab" / "lab.json").read_text())["rows"] == found["rows"]
    alone = json.loads(CliRunner().invoke(app, ["lab", "--ruler", str(folder), "--no-finetuning", "--json", "--model",
                                                str(tmp_path / "lab" / "a longer name-0" / "final")]).stdout)
    assert alone["rows"][0]["figures"]["blimp"]["mean"] == found["rows"][0]["figures"]["blimp"]["values"][0]
    for wrong in (["lab"], ["lab", str(file)], ["lab", "--model", "mini"], [*given[:6], "--no-finetuning"]):
        assert isinstance(CliRunner().invoke(app, wrong).exception, ConfigError)
