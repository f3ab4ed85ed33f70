"""mini-bert evaluate: masked prediction, and the comprehensive evaluation with its report."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from mini_bert import MiniBERT, WordPieceTokenizer
from mini_bert.cli.app import app
from mini_bert.cli.measure.evaluate import _loss
from mini_bert.errors import DataError, InputError
from mini_bert.evaluation.suite.suite import PARTS


@pytest.fixture
def run(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def evaluate(*arguments: object):
        return CliRunner().invoke(app, ["evaluate", "--model", str(place / "model"), "--length", "16", "--threads", "1",
                                        *map(str, arguments)])

    return evaluate


def everything(place, *more):
    return "--quick", "--tasks", place / "tasks", "--data", place / "text.txt", "--max-samples", 20, *more


def test_data_without_other_options_measures_masked_prediction_and_writes_nothing(place, run, tmp_path):
    found = json.loads(run("--data", place / "text.txt", "--json").stdout)
    assert {"model", "data", "seed", "length", "loss", "perplexity", "masked_accuracy", "masked", "baselines",
            "by_position", "by_frequency", "baselines_from", "max_samples"} == set(found)
    assert list(tmp_path.iterdir()) == []


def test_masked_prediction_can_be_sampled_and_fits_the_length_of_the_model(place, tmp_path):
    asked = ["evaluate", "--model", str(place / "model"), "--data", str(place / "text.txt"), "--threads", "1"]
    whole, some = (json.loads(CliRunner().invoke(app, [*asked, "--json", *more]).stdout)
                   for more in ([], ["--max-samples", "4"]))
    assert whole["length"] == 24                              # the model's maximum
    assert 0 < some["masked"] < whole["masked"] / 3
    assert (_loss(1.5, 3), _loss(0.0, 0)) == ("1.500", "–")   # no tokens, no loss
    told = CliRunner().invoke(app, ["evaluate", "--help"]).output
    assert "nothing is cached" in " ".join(told.replace("│", "").split())


def test_long_texts_are_measured_in_segments_with_and_without_a_memory(place, run, tmp_path):
    refused = run("--segments", "--data", place / "text.txt")
    assert refused.exit_code == 1
    assert isinstance(refused.exception, InputError)
    assert "needs a causal model" in str(refused.exception)
    model = MiniBERT.load(place / "model")
    MiniBERT(replace(model.config, score_terms="relative + causal", stack="recurrent", position_embeddings="none",
                     init_std=0.3),
             seed=1).save(tmp_path / "xl")
    WordPieceTokenizer.load(place / "model").save(tmp_path / "xl")
    asked = ("--segments", "--model", tmp_path / "xl", "--data", place / "text.txt")
    found = json.loads(run(*asked, "--json").stdout)
    assert [row["memory"] for row in found["by_memory"]] == [0, 16]
    assert found["by_memory"][0]["loss"] != found["by_memory"][1]["loss"]
    assert "in segments of 16 tokens" in run(*asked).output


def test_a_requested_part_that_cannot_be_measured_is_a_failure(place, run, tmp_path):
    result = run("--quick", "--data", place / "text.txt", "--only", "pos")
    assert result.exit_code == 1
    assert "not measured: pos" in result.output


def test_the_comprehensive_evaluation_prints_a_table_and_writes_a_report(place, run, tmp_path):
    result = run(*everything(place))
    assert result.exit_code == 0, result.output
    for words in ("Masked prediction", "Probes", "Fine-tuning", "Zero-shot", "word-type memory", "random init",
                  "linear chain", "chance 50.0"):
        assert words in result.output
    last = result.output.rstrip().splitlines()[-1]
    assert last.endswith("evaluation.html")
    html = (tmp_path / "evaluation.html").read_text("utf-8")
    assert html.startswith("<!doctype html>")
    again = json.loads(run(*everything(place, "--json")).stdout)
    assert [part["name"] for part in again["parts"]] == list(PARTS)
    assert {"model", "data", "tasks", "quick", "seed", "summary", "parts", "not_measured", "seconds",
            "report"} <= set(again)
    for row in again["summary"]:
        assert row["baselines"] or row["random_init"] is not None
        assert row["figure"] in html
    assert [path.name for path in tmp_path.iterdir()] == ["evaluation.html"]


def test_parts_can_be_selected_and_the_report_named(place, run, tmp_path):
    found = json.loads(run("--tasks", place / "tasks", "--data", place / "text.txt", "--only", "agreement, blimp",
                           "--report", "grammar.html", "--json").stdout)
    assert [part["name"] for part in found["parts"]] == ["blimp", "agreement"]
    assert not found["quick"]
    assert found["report"] == "grammar.html"
    assert (tmp_path / "grammar.html").is_file()


def test_without_tasks_the_parts_that_need_them_are_listed(place, run):
    result = run("--quick", "--data", place / "text.txt", "--max-samples", 20)
    assert result.exit_code == 0, result.output
    assert "not measured: pos: it needs task data; name a folder with --tasks" in result.output


def test_without_data_the_text_is_pydocs(run, monkeypatch):
    import mini_bert.text.corpora.pydocs as pydocs

    lines = ["The dog runs in the king .", "", "A cat sees the queen ."] * 9
    monkeypatch.setattr(pydocs, "pydocs", lambda: iter(lines))
    found = json.loads(run("--quick", "--only", "masked", "--json").stdout)
    assert found["data"] == ["pydocs"]
    assert [part["name"] for part in found["parts"]] == ["masked"]


@pytest.mark.parametrize(("arguments", "kind", "words"), [
    (["--quick", "--tasks", "nowhere"], DataError, "no task folder nowhere"),
    (["--only", "pos,blump"], InputError, "no part 'blump'"),
    (["--only", ","], InputError, "--only is empty"),
    (["--quick", "--report", "no/where.html"], InputError, "There is no directory no"),
    (["--quick", "--data", "-"], InputError, "standard input"),
])
def test_bad_input_is_refused_before_anything_is_computed(place, run, tmp_path, arguments, kind, words):
    if "--data" not in arguments:
        arguments = [*arguments, "--data", str(place / "text.txt")]
    error = run(*arguments).exception
    assert isinstance(error, kind)
    assert words in str(error)
    assert list(tmp_path.iterdir()) == []


def test_a_malformed_file_is_named_with_its_line(place, run, tmp_path):
    broken = tmp_path / "tasks" / "sst2"
    broken.mkdir(parents=True)
    (broken / "train.tsv").write_text("sentence\tlabel\na\t1\nb\n")
    (broken / "dev.tsv").write_text("sentence\tlabel\na\t1\n")
    error = run("--quick", "--data", place / "text.txt", "--tasks", tmp_path / "tasks").exception
    assert isinstance(error, DataError)
    assert "train.tsv, line 3: it has 1 columns, but the first line has 2" in str(error)


def test_the_help_has_examples(run):
    shown = run("--help").output
    assert "mini-bert evaluate --quick --tasks eval --data sentences.txt" in shown
    assert "mini-bert evaluate --model runs/mine --data sentences.txt" in shown
