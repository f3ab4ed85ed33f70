"""Damaged logs and corpora: the doctor reports what is missing, and never ends in a traceback."""

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


def copied(factory, folder, name="recipe", **options):
    shutil.copytree(factory.run(name), folder / "run", **options)
    return folder / "run"


def written(run: Path, records: list) -> Path:
    (run / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in records))
    return run


def records_of(run: Path) -> list:
    return [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def log_only(factory, tmp_path_factory) -> tuple[Path, list]:
    """A run with only its log and config, without checkpoints and corpus; and the log's records."""
    run = copied(factory, tmp_path_factory.mktemp("garbled"),
                 ignore=shutil.ignore_patterns("checkpoints", "best", "final"))
    config = run / "config.yaml"
    config.write_text(config.read_text().replace(str(factory.corpus("chain").resolve()), str(run / "gone")))
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
def test_no_garbled_log_ends_in_a_traceback(log_only, changes, everywhere):
    run, records = log_only
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
    ("vocab_size: 45", "vocab_size: many", (CheckpointError, "vocab_size must be an integer")),
    ("max_grad_norm: 1.0", "max_grad_norm: [1]", (ConfigError, "max_grad_norm"))])
def test_invalid_settings_are_refused(log_only, tmp_path, old, new, refusal):
    run = tmp_path / "run"
    shutil.copytree(log_only[0], run)
    config = run / "config.yaml"
    assert old in config.read_text()
    config.write_text(config.read_text().replace(old, new))
    with pytest.raises(refusal[0], match=refusal[1]):
        examine(run)


def test_a_run_with_unknown_baselines_is_not_called_healthy(log_only, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(log_only[0], run)
    written(run, log_only[1])
    assert examine(run).verdict == "healthy"                  # by the baseline stored in its config
    config = run / "config.yaml"
    assert "unigram_loss" in config.read_text()
    config.write_text(config.read_text().replace("unigram_loss", "unigram"))
    found = examine(run)
    assert found.verdict == "unclear"
    assert found.says == "No verdict is possible: still at uniform, stuck at unigram could not be examined."
    assert "the corpus is missing" in found.left_out["stuck at unigram"]


def low_rate(factory, log_only, folder: Path, change) -> Path:
    """The log of a run whose weights hardly change, without its corpus."""
    run = folder / "run"
    shutil.copytree(log_only[0], run)
    return written(run, [change(line) for line in records_of(factory.run("learning rate too low"))])


def test_a_learning_rate_that_is_too_low_is_described_without_nan(factory, log_only, tmp_path):
    def flat(line):
        return line | {"loss": 3.8} | ({"eval_loss": 3.8} if "eval_loss" in line else {})

    first = examine(low_rate(factory, log_only, tmp_path / "a", flat)).findings[0]
    assert first.name == "learning rate too low"
    assert "at most a tenth of the usual" in first.says
    assert "has not fallen in 100 steps" in first.says
    found = examine(low_rate(factory, log_only, tmp_path / "b", lambda line: flat(line) | {"learning_rate": None}))
    assert "no learning rate" in found.left_out["learning rate too low"]


def test_a_trained_model_may_change_little_even_without_its_corpus(factory, log_only, tmp_path):
    def trained(line):
        return line | {"loss": 1.5} | ({"eval_loss": 1.5} if "eval_loss" in line else {})

    found = examine(low_rate(factory, log_only, tmp_path, trained))
    assert found.baselines.bigram is None
    assert "learning rate too low" not in [finding.name for finding in found.findings]


@pytest.mark.parametrize("step", [None, "240", [240], {"a": 1}, 1e400, float("nan"), 10**400, True])
def test_a_step_that_is_not_a_number_only_costs_its_line(factory, tmp_path, step):
    run = copied(factory, tmp_path)
    records = records_of(run)
    records[-1]["step"] = step
    found = examine(written(run, records))
    assert found.healthy
    assert found.step == 230
    assert not found.finished


def test_one_wrong_number_costs_one_point_and_is_noted(factory, tmp_path):
    run = copied(factory, tmp_path)
    records = records_of(run)
    records[2]["tokens"] = 10**12
    found = examine(written(run, records))
    assert found.healthy
    assert any("1 of 24 points of the training loss are out of order" in note for note in found.notes)
    assert len(RunRecord.read(run).training_curve) == 23


@pytest.mark.parametrize("line", ['{"step": ', "[" * 100_000, '"a word"', "17"])
def test_lines_that_are_not_records_are_counted(factory, tmp_path, line):
    run = copied(factory, tmp_path)
    log = run / "log.jsonl"
    log.write_text(line + "\n" + log.read_text())
    found = examine(run)
    assert found.healthy
    assert any("1 lines" in note for note in found.notes)


def test_a_report_uses_the_log_as_it_was_read(factory, tmp_path):
    """Verdict and curves agree, even if the run continues to write."""
    run = copied(factory, tmp_path)
    record = RunRecord.read(run)
    (run / "log.jsonl").write_text("")
    assert "Healthy: the held-out loss" in run_page(record)


def test_a_log_that_is_a_directory_is_noted(factory, tmp_path):
    run = copied(factory, tmp_path)
    (run / "log.jsonl").unlink()
    (run / "log.jsonl").mkdir()
    found = examine(run)
    assert found.verdict == "unclear"
    assert any("cannot be read" in note for note in found.notes)


@pytest.mark.parametrize("file", ["tokens.bin", "sentences.bin", "documents.bin", "splits.bin", "vocab.txt"])
def test_a_corpus_of_random_bytes_only_prevents_the_checks_that_need_it(factory, tmp_path, file):
    run, broken = copied(factory, tmp_path), tmp_path / "broken"
    shutil.copytree(factory.corpus("chain"), broken)
    size = (broken / file).stat().st_size
    (broken / file).write_bytes(np.random.default_rng(0).integers(0, 256, size, np.uint8).tobytes())
    config = run / "config.yaml"
    config.write_text(config.read_text().replace(str(factory.corpus("chain").resolve()), str(broken)))
    found = examine(run)
    assert found.healthy
    assert "collapsed representations" in found.left_out or any("changed since" in note for note in found.notes)
    assert "Not examined" in run_page(RunRecord.read(run))


def test_a_corpus_without_training_text_is_reported(factory, tmp_path):
    run, empty = copied(factory, tmp_path), tmp_path / "empty"
    shutil.copytree(factory.corpus("chain"), empty)
    splits = np.fromfile(empty / "splits.bin", np.uint8)
    np.ones_like(splits).tofile(empty / "splits.bin")         # all held out
    manifest = json.loads((empty / "corpus.json").read_text())
    del manifest["digest"]                                    # as in older corpora
    (empty / "corpus.json").write_text(json.dumps(manifest))
    config = run / "config.yaml"
    config.write_text(config.read_text().replace(str(factory.corpus("chain").resolve()), str(empty)))
    assert "has no training text" in examine(run).left_out["duplicate data"]
