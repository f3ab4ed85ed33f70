"""Logs that are garbled, corpora that are noise: a sentence or a stated gap, and never a traceback."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mini_bert.analysis.doctor import examine, examine_record
from mini_bert.analysis.run_record import RunRecord
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
    assert "verdict" in run_page(RunRecord.read(run))


def test_a_corpus_without_text_to_train_on_is_a_stated_gap(shop, tmp_path):
    run, empty = copied(shop, tmp_path), tmp_path / "empty"
    shutil.copytree(shop.corpus("chain"), empty)
    splits = np.fromfile(empty / "splits.bin", np.uint8)
    np.ones_like(splits).tofile(empty / "splits.bin")         # all held out
    config = run / "config.yaml"
    config.write_text(config.read_text().replace(str(shop.corpus("chain").resolve()), str(empty)))
    assert "no text to train on" in examine(run).left_out["duplicate data"]
