"""A healthy run may look ill at first: the doctor waits until the curve is long enough, and says so."""

import json
import shutil
from copy import copy
from dataclasses import replace
from pathlib import Path

import pytest
from doctor_runs import HEALTHY

from mini_bert.analysis.doctor import data as doctor_data
from mini_bert.analysis.doctor import symptoms
from mini_bert.analysis.doctor.doctor import examine, examine_record
from mini_bert.analysis.doctor.run_record import RunRecord


def after(record: RunRecord, lines: int) -> RunRecord:
    """The run with only the first `lines` of its log, and its final checkpoint."""
    young = copy(record)
    young.records, young.notes = record.records[:lines], []
    for curve in ("training_curve", "heldout_curve"):
        young.__dict__.pop(curve, None)
    return young


def cut(factory, folder: Path, name: str, lines: int, **last: object) -> Path:
    """A copy of a run with only the first `lines` of its log; `last` changes the last of them."""
    run = folder / "run"
    shutil.copytree(factory.run(name), run)
    log = run / "log.jsonl"
    records = [json.loads(line) for line in log.read_text().splitlines()[:lines]]
    records[-1] |= last
    log.write_text("".join(json.dumps(record) + "\n" for record in records))
    return run


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_run_is_never_called_sick_at_any_line_of_its_log(factory, name, monkeypatch):
    record = RunRecord.read(factory.run(name))
    # the same at every line, so computed once
    baselines, stats = symptoms.baseline_losses(record), symptoms.checkpoint_stats(record)
    share = doctor_data.repeated_share(record.corpus)
    monkeypatch.setattr(symptoms, "baseline_losses", lambda run: baselines)
    monkeypatch.setattr(symptoms, "checkpoint_stats", lambda run: stats)
    monkeypatch.setattr(doctor_data, "repeated_share", lambda corpus: share)
    monkeypatch.delitem(symptoms.DISEASES, "broken attention mask")           # slow, and independent of the log
    found = [examine_record(after(record, lines)) for lines in range(len(record.records) + 1)]
    alarms = [(lines, diagnosis.says) for lines, diagnosis in enumerate(found) if diagnosis.verdict == "sick"]
    assert alarms == []
    verdicts = [diagnosis.verdict for diagnosis in found]
    first = verdicts.index("healthy")
    assert first > 0
    assert set(verdicts[:first]) == {"unclear"}
    assert set(verdicts[first:]) == {"healthy"}               # the verdict does not change back


@pytest.mark.parametrize("name", ["mini", "mini-deep", "mini-seed-1", "mini-seed-2"])
def test_the_logs_of_the_shipped_models_are_healthy_from_their_first_losses_on(name):
    record = RunRecord.read(Path(__file__).parents[2] / "docs" / "results" / "runs" / name)
    measured = [place for place, line in enumerate(record.records, 1) if "eval_loss" in line]
    few = sorted({1, 4, *(place + n for place in (*measured[:5], measured[-1]) for n in (-1, 0))})
    verdicts = [examine_record(after(record, lines)).verdict for lines in few]
    first = verdicts.index("healthy")
    assert few[first] < measured[2]                           # judged by its training loss at first
    assert set(verdicts[:first]) == {"unclear"}
    assert set(verdicts[first:]) == {"healthy"}


@pytest.mark.parametrize("name", ["collapsed representations", "dead units", "vanishing gradient",
                                  "learning rate too high", "exploding"])
def test_findings_are_only_possible_while_the_curve_is_short(factory, tmp_path, name):
    found = examine(cut(factory, tmp_path, name, 4))          # 40 steps
    assert found.verdict == "unclear"
    assert {finding.sure.value for finding in found.findings} == {"possible"}
    assert found.findings[-1].name == "too short to tell"
    if len(found.findings) > 1:
        assert found.says.startswith("It is too early to tell.")
        assert found.findings[0].name in found.says


def test_skipped_steps_are_reported_at_once(factory, tmp_path):
    found = examine(cut(factory, tmp_path, "recipe", 3, loss=None, skipped=5))
    assert found.verdict == "sick"
    assert (found.findings[0].name, found.findings[0].sure.value) == ("exploding", "certain")


def test_a_run_that_exploded_has_no_finding_about_vanishing_gradients(factory, tmp_path):
    """Layers without a gradient are then nothing to treat."""
    assert "vanishing gradient" in [finding.name for finding in examine(factory.run("vanishing gradient")).findings]
    found = examine(cut(factory, tmp_path, "vanishing gradient", 7, loss=None, skipped=5))
    assert [finding.name for finding in found.findings if finding.name in ("exploding", "vanishing gradient")] == \
        ["exploding"]
    assert "training diverges" in found.left_out["vanishing gradient"]


@pytest.mark.parametrize(("skipped", "verdict"), [(1, "healthy"), (2, "healthy"), (3, "sick")])
def test_one_or_two_skipped_steps_are_healthy(factory, tmp_path, skipped, verdict):
    assert examine(cut(factory, tmp_path, "recipe", 7, skipped=skipped)).verdict == verdict          # 70 steps


def test_the_verdict_names_the_first_finding_that_is_more_than_possible(factory, tmp_path):
    """In a young run, losses that are not finite are certain, while findings from the updates are only possible."""
    found = examine(cut(factory, tmp_path, "learning rate too high", 4, loss=None, skipped=5))
    sure = {finding.name: finding.sure.value for finding in found.findings}
    assert found.findings[0].name == "learning rate too high"
    assert sure["learning rate too high"] == "possible"
    assert sure["too short to tell"] == "possible"
    more = len(found.findings) - 2                            # without `exploding` and `too short to tell`
    assert found.says == f"Not healthy: exploding, and {more} more finding{'s' if more > 1 else ''}."


def test_similar_vectors_are_only_possible_collapse_while_frequencies_are_being_learned(factory, monkeypatch):
    """A default initialisation then has a mean cosine above 0.9, but differences in several dimensions."""
    record = RunRecord.read(factory.run("without frequencies"))
    stats = replace(symptoms.checkpoint_stats(record), mean_cosine=0.95, dimensionality=5.0)
    monkeypatch.setattr(symptoms, "checkpoint_stats", lambda run: stats)
    young = examine_record(after(record, 12))
    assert young.verdict == "unclear"
    assert "signs of: collapsed representations" in young.says
    assert examine_record(after(record, 20)).findings[0].name == "collapsed representations"
    stats = replace(stats, dimensionality=1.2)
    assert examine_record(after(record, 12)).verdict == "sick"


def test_a_run_at_the_unigram_loss_is_given_150_steps(factory, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(factory.run("stuck at unigram"), run)
    log = run / "log.jsonl"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:12]))   # 120 steps
    found = examine(run)
    assert found.verdict == "unclear"
    assert "its loss is the unigram loss" in found.says


def test_a_rising_loss_in_the_first_epoch_is_no_over_fitting(factory, tmp_path):
    """Over-fitting needs text that was read before, and a falling training loss."""
    for name, change in (("first epoch", {"tokens": 1e-3}), ("not falling", {"loss": 1.5})):
        run = tmp_path / name
        shutil.copytree(factory.run("over-fitting"), run)
        log = run / "log.jsonl"
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        for line in lines:
            if "tokens" in change:
                line["tokens"] *= change["tokens"]
            elif line.get("loss") is not None:
                line["loss"] = change["loss"]
        log.write_text("".join(json.dumps(line) + "\n" for line in lines))
        assert "over-fitting" not in [finding.name for finding in examine(run).findings]


def test_over_fitting_is_found_whatever_share_training_masks(factory, tmp_path):
    """Masking more raises the training loss; what counts is that the gap grows."""
    run = tmp_path / "run"
    shutil.copytree(factory.run("over-fitting"), run)
    log = run / "log.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    heldout = min(line["eval_loss"] for line in lines if "eval_loss" in line)
    for line in lines:
        line["loss"] += heldout
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = {finding.name: finding for finding in examine(run).findings}
    assert found["over-fitting"].evidence["training_loss"] > found["over-fitting"].evidence["heldout_loss"]
    assert found["over-fitting"].evidence["gap_grown"] > 0.1
