"""Healthy runs look ill while they are young: the doctor waits, and says that it does."""

import json
import shutil
from copy import copy

import pytest
from doctor_runs import HEALTHY

from mini_bert.analysis import doctor_data, symptoms
from mini_bert.analysis.doctor import examine, examine_record
from mini_bert.analysis.run_record import RunRecord


def after(record: RunRecord, lines: int) -> RunRecord:
    """The run as it was when its log had so many lines; corpus and checkpoint are those that were read."""
    young = copy(record)
    young.records, young.notes = record.records[:lines], []
    for curve in ("training_curve", "heldout_curve"):
        young.__dict__.pop(curve, None)
    return young


@pytest.mark.parametrize("name", HEALTHY)
def test_no_line_of_a_healthy_log_raises_an_alarm(shop, name, monkeypatch):
    record = RunRecord.read(shop.run(name))
    # the same at every line: worked out once
    levels, view, share = symptoms.measured_levels(record), symptoms.view_of(record), \
        doctor_data.repeated_share(record.corpus)
    monkeypatch.setattr(symptoms, "measured_levels", lambda run: levels)
    monkeypatch.setattr(symptoms, "view_of", lambda run: view)
    monkeypatch.setattr(doctor_data, "repeated_share", lambda corpus: share)
    monkeypatch.delitem(symptoms.DISEASES, "broken attention mask")           # an experiment with the model alone
    found = [examine_record(after(record, lines)) for lines in range(len(record.records) + 1)]
    alarms = [(lines, diagnosis.says) for lines, diagnosis in enumerate(found) if diagnosis.verdict == "sick"]
    assert alarms == []
    assert found[0].verdict == "unclear"
    assert found[-1].verdict == "healthy"


@pytest.mark.parametrize("name", ["collapsed representations", "dead units", "vanishing gradient",
                                  "learning rate too high", "exploding"])
def test_what_may_pass_is_only_possible_while_the_run_is_young(shop, tmp_path, name):
    run = tmp_path / "run"
    shutil.copytree(shop.run(name), run)
    log = run / "log.jsonl"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:4]))    # 40 steps
    found = examine(run)
    assert found.verdict == "unclear"
    assert {finding.sure.value for finding in found.findings} == {"possible"}
    assert found.findings[-1].name == "too short to tell"
    if len(found.findings) > 1:
        assert found.says.startswith("It is too early to say.")
        assert found.findings[0].name in found.says


def test_steps_without_a_number_are_an_alarm_at_once(shop, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(shop.run("recipe"), run)
    log = run / "log.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()[:3]]
    lines[-1] |= {"loss": None, "skipped": 5}
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = examine(run)
    assert found.verdict == "sick"
    assert (found.findings[0].name, found.findings[0].sure.value) == ("exploding", "certain")


def test_a_run_that_stands_at_the_unigram_level_is_given_time(shop, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(shop.run("stuck at unigram"), run)
    log = run / "log.jsonl"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:12]))   # 120 steps
    found = examine(run)
    assert found.verdict == "unclear"
    assert "what frequencies give" in found.says


def test_a_loss_that_rises_in_the_first_reading_is_no_over_fitting(shop, tmp_path):
    """Over-fitting takes a text that was read before, and a training loss below the held-out loss."""
    for name, change in (("first reading", {"tokens": 1e-3}), ("no gap", {"loss": 10.0})):
        run = tmp_path / name
        shutil.copytree(shop.run("over-fitting"), run)
        log = run / "log.jsonl"
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        for line in lines:
            if "tokens" in change:
                line["tokens"] *= change["tokens"]
            elif line.get("loss") is not None:
                line["loss"] += change["loss"]                # falls as before, but from high above
        log.write_text("".join(json.dumps(line) + "\n" for line in lines))
        assert "over-fitting" not in [finding.name for finding in examine(run).findings]
