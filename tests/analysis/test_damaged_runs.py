"""Logs that are garbled, corpora that are noise: a sentence or a stated gap, and never a traceback."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mini_bert import CheckpointError, ConfigError
from mini_bert.analysis.doctor.doctor import examine, examine_record
from mini_bert.analysis.doctor.run_record import RunRecord
from mini_bert.report.run_page import run_page


def copied(shop, folder, name="recipe", **options):
    shutil.copytree(shop.run(name), folder / "run", **options)
    return folder / "run"


def written(run: Path, records: list) -> Path:
    (run / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in records))
    return run


def records_of(run: Path) -> list:
    return [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def log_alone(shop, tmp_path_factory) -> tuple[Path, list]:
    """A run without checkpoints and without its text, so that its log is all there is."""
    run = copied(shop, tmp_path_factory.mktemp("garbled"),
                 ignore=shutil.ignore_patterns("checkpoints", "best", "final"))
    config = run / "config.yaml"
    config.write_text(config.read_text().replace(str(shop.corpus("chain").resolve()), str(run / "gone")))
    return run, records_of(run)


NUMBERS = st.one_of(st.integers(-10, 10**6), st.integers(10**300, 10**301), st.floats(), st.just(1e308))
JUNK = st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=5), st.lists(NUMBERS, max_size=2),
                 st.dictionaries(st.text(max_size=3), NUMBERS, max_size=2))
FIELDS = ("step", "tokens", "loss", "smoothed_loss", "eval_loss", "masked_accuracy", "learning_rate", "grad_norm",
          "layer_grad_norm", "update_ratio", "total_steps", "skipped", "seconds", "tokens_per_second", "peak_rss_mb")
CHANGES = st.lists(st.tuples(st.integers(0, 23), st.sampled_from(FIELDS), st.one_of(JUNK, st.just("missing"))),
                   min_size=1, max_size=12)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=CHANGES, everywhere=st.lists(st.tuples(st.sampled_from(FIELDS), JUNK), max_size=2))
def test_no_log_however_garbled_ends_in_a_traceback(log_alone, changes, everywhere):
    run, records = log_alone
    garbled = [dict(line) for line in records]
    for place, field, value in changes:
        if value == "missing":
            garbled[place].pop(field, None)
        else:
            garbled[place][field] = value
    for line in garbled:
        line.update(everywhere)
    record = RunRecord.read(written(run, garbled))
    found = examine_record(record)
    json.dumps(found.to_dict(), allow_nan=False)
    assert found.verdict in ("healthy", "sick", "unclear")
    assert run_page(record).startswith("<!doctype html>")


@pytest.mark.parametrize(("old", "new", "refusal"), [
    ("vocab_size: 45", "vocab_size: many", (CheckpointError, "vocab_size must be a whole number")),
    ("max_grad_norm: 1.0", "max_grad_norm: [1]", (ConfigError, "max_grad_norm"))])
def test_settings_that_are_none_are_refused(log_alone, tmp_path, old, new, refusal):
    run = tmp_path / "run"
    shutil.copytree(log_alone[0], run)
    config = run / "config.yaml"
    assert old in config.read_text()
    config.write_text(config.read_text().replace(old, new))
    with pytest.raises(refusal[0], match=refusal[1]):
        examine(run)


def test_a_run_of_which_no_level_is_known_is_not_called_healthy(log_alone, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(log_alone[0], run)
    written(run, log_alone[1])
    assert examine(run).verdict == "healthy"                  # by the level that its config tells
    config = run / "config.yaml"
    assert "unigram_loss" in config.read_text()
    config.write_text(config.read_text().replace("unigram_loss", "unigram"))
    found = examine(run)
    assert found.verdict == "unclear"
    assert found.says == "It cannot be said: still at uniform, stuck at unigram could not be examined."
    assert "the corpus is not there" in found.left_out["stuck at unigram"]


def low_rate(shop, log_alone, folder: Path, change) -> Path:
    """The log of a run that hardly moves, its text gone."""
    run = folder / "run"
    shutil.copytree(log_alone[0], run)
    return written(run, [change(line) for line in records_of(shop.run("learning rate too low"))])


def test_a_rate_that_is_too_low_is_told_in_numbers_that_are_some(shop, log_alone, tmp_path):
    def flat(line):
        return line | {"loss": 3.8} | ({"eval_loss": 3.8} if "eval_loss" in line else {})

    first = examine(low_rate(shop, log_alone, tmp_path / "a", flat)).findings[0]
    assert first.name == "learning rate too low"
    assert "a tenth or less of what is usual" in first.says
    assert "has not fallen in 100 steps" in first.says
    found = examine(low_rate(shop, log_alone, tmp_path / "b", lambda line: flat(line) | {"learning_rate": None}))
    assert "no learning rate" in found.left_out["learning rate too low"]


def test_a_trained_model_may_move_little_where_its_text_is_gone(shop, log_alone, tmp_path):
    def trained(line):
        return line | {"loss": 1.5} | ({"eval_loss": 1.5} if "eval_loss" in line else {})

    found = examine(low_rate(shop, log_alone, tmp_path, trained))
    assert found.levels.bigram is None
    assert "learning rate too low" not in [finding.name for finding in found.findings]


@pytest.mark.parametrize("step", [None, "240", [240], {"a": 1}, 1e400, float("nan"), 10**400, True])
def test_a_step_that_is_no_number_costs_its_line(shop, tmp_path, step):
    run = copied(shop, tmp_path)
    records = records_of(run)
    records[-1]["step"] = step
    found = examine(written(run, records))
    assert found.healthy
    assert found.step == 230
    assert not found.finished


def test_one_wrong_number_costs_one_point_and_is_noted(shop, tmp_path):
    run = copied(shop, tmp_path)
    records = records_of(run)
    records[2]["tokens"] = 10**12
    found = examine(written(run, records))
    assert found.healthy
    assert any("1 of 24 points of the training loss are out of order" in note for note in found.notes)
    assert len(RunRecord.read(run).training_curve) == 23


@pytest.mark.parametrize("line", ['{"step": ', "[" * 100_000, '"a word"', "17"])
def test_lines_that_are_no_records_are_counted(shop, tmp_path, line):
    run = copied(shop, tmp_path)
    log = run / "log.jsonl"
    log.write_text(line + "\n" + log.read_text())
    found = examine(run)
    assert found.healthy
    assert any("1 lines" in note for note in found.notes)


def test_a_page_tells_of_the_log_as_it_was_read(shop, tmp_path):
    """Verdict and curves are of one reading, also of a run that goes on meanwhile."""
    run = copied(shop, tmp_path)
    record = RunRecord.read(run)
    (run / "log.jsonl").write_text("")
    assert "Healthy: the held-out loss" in run_page(record)


def test_a_log_that_is_a_directory_is_a_stated_gap(shop, tmp_path):
    run = copied(shop, tmp_path)
    (run / "log.jsonl").unlink()
    (run / "log.jsonl").mkdir()
    found = examine(run)
    assert found.verdict == "unclear"
    assert any("cannot be read" in note for note in found.notes)


@pytest.mark.parametrize("file", ["tokens.bin", "sentences.bin", "documents.bin", "splits.bin", "vocab.txt"])
def test_a_corpus_of_noise_costs_only_what_needs_it(shop, tmp_path, file):
    run, broken = copied(shop, tmp_path), tmp_path / "broken"
    shutil.copytree(shop.corpus("chain"), broken)
    size = (broken / file).stat().st_size
    (broken / file).write_bytes(np.random.default_rng(0).integers(0, 256, size, np.uint8).tobytes())
    config = run / "config.yaml"
    config.write_text(config.read_text().replace(str(shop.corpus("chain").resolve()), str(broken)))
    found = examine(run)
    assert found.healthy
    assert "collapsed representations" in found.left_out or any("changed since" in note for note in found.notes)
    assert "Diagnosis" in run_page(RunRecord.read(run))


def test_a_corpus_without_text_to_train_on_is_a_stated_gap(shop, tmp_path):
    run, empty = copied(shop, tmp_path), tmp_path / "empty"
    shutil.copytree(shop.corpus("chain"), empty)
    splits = np.fromfile(empty / "splits.bin", np.uint8)
    np.ones_like(splits).tofile(empty / "splits.bin")         # all held out
    config = run / "config.yaml"
    config.write_text(config.read_text().replace(str(shop.corpus("chain").resolve()), str(empty)))
    assert "no text to train on" in examine(run).left_out["duplicate data"]
