"""Healthy runs look ill while they are young: the doctor waits, and says that it does."""

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
    """The run as it was when its log had so many lines; corpus and checkpoint are those that were read."""
    young = copy(record)
    young.records, young.notes = record.records[:lines], []
    for curve in ("training_curve", "heldout_curve"):
        young.__dict__.pop(curve, None)
    return young


def cut(shop, folder: Path, name: str, lines: int, **last: object) -> Path:
    """A copy of a run whose log ends after so many lines; `last` changes the last of them."""
    run = folder / "run"
    shutil.copytree(shop.run(name), run)
    log = run / "log.jsonl"
    records = [json.loads(line) for line in log.read_text().splitlines()[:lines]]
    records[-1] |= last
    log.write_text("".join(json.dumps(record) + "\n" for record in records))
    return run


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
    verdicts = [diagnosis.verdict for diagnosis in found]
    first = verdicts.index("healthy")
    assert first > 0
    assert set(verdicts[:first]) == {"unclear"}
    assert set(verdicts[first:]) == {"healthy"}               # what was said once is not taken back


@pytest.mark.parametrize("name", ["mini", "mini-deep", "mini-seed-1", "mini-seed-2"])
def test_the_logs_of_the_shipped_models_are_healthy_from_their_first_losses_on(name):
    record = RunRecord.read(Path(__file__).parents[2] / "docs" / "results" / "runs" / name)
    measured = [place for place, line in enumerate(record.records, 1) if "eval_loss" in line]
    few = sorted({1, 4, *(place + n for place in (*measured[:5], measured[-1]) for n in (-1, 0))})
    verdicts = [examine_record(after(record, lines)).verdict for lines in few]
    first = verdicts.index("healthy")
    assert few[first] < measured[2]                           # before it is judged by its held-out losses
    assert set(verdicts[:first]) == {"unclear"}
    assert set(verdicts[first:]) == {"healthy"}


@pytest.mark.parametrize("name", ["collapsed representations", "dead units", "vanishing gradient",
                                  "learning rate too high", "exploding"])
def test_what_may_pass_is_only_possible_while_the_run_is_young(shop, tmp_path, name):
    found = examine(cut(shop, tmp_path, name, 4))          # 40 steps
    assert found.verdict == "unclear"
    assert {finding.sure.value for finding in found.findings} == {"possible"}
    assert found.findings[-1].name == "too short to tell"
    if len(found.findings) > 1:
        assert found.says.startswith("It is too early to say.")
        assert found.findings[0].name in found.says


def test_steps_without_a_number_are_an_alarm_at_once(shop, tmp_path):
    found = examine(cut(shop, tmp_path, "recipe", 3, loss=None, skipped=5))
    assert found.verdict == "sick"
    assert (found.findings[0].name, found.findings[0].sure.value) == ("exploding", "certain")


@pytest.mark.parametrize(("skipped", "verdict"), [(1, "healthy"), (2, "healthy"), (3, "sick")])
def test_a_step_or_two_without_a_number_are_no_alarm(shop, tmp_path, skipped, verdict):
    assert examine(cut(shop, tmp_path, "recipe", 7, skipped=skipped)).verdict == verdict          # 70 steps


def test_the_headline_is_the_first_finding_that_is_sure(shop, tmp_path):
    """Of a young run with steps that are not finite: that is known at once, and what its updates show may pass."""
    found = examine(cut(shop, tmp_path, "learning rate too high", 4, loss=None, skipped=5))
    sure = {finding.name: finding.sure.value for finding in found.findings}
    assert found.findings[0].name == "learning rate too high"
    assert sure["learning rate too high"] == "possible"
    assert sure["too short to tell"] == "possible"
    more = len(found.findings) - 2                            # neither the first nor that it is short
    assert found.says == f"Not healthy: exploding, and {more} more finding{'s' if more > 1 else ''}."


def test_vectors_that_are_alike_while_frequencies_are_learned_may_pass(shop, monkeypatch):
    """A plain start has a mean cosine above 0.9 then, with differences in several dimensions."""
    record = RunRecord.read(shop.run("without frequencies"))
    view = replace(symptoms.view_of(record), mean_cosine=0.95, dimensionality=5.0)
    monkeypatch.setattr(symptoms, "view_of", lambda run: view)
    young = examine_record(after(record, 12))
    assert young.verdict == "unclear"
    assert "signs of: collapsed representations" in young.says
    assert examine_record(after(record, 20)).findings[0].name == "collapsed representations"
    view = replace(view, dimensionality=1.2)
    assert examine_record(after(record, 12)).verdict == "sick"


def test_a_run_that_stands_at_the_unigram_level_is_given_time(shop, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(shop.run("stuck at unigram"), run)
    log = run / "log.jsonl"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:12]))   # 120 steps
    found = examine(run)
    assert found.verdict == "unclear"
    assert "what frequencies give" in found.says


def test_a_loss_that_rises_in_the_first_reading_is_no_over_fitting(shop, tmp_path):
    """Over-fitting takes a text that was read before, and a training loss that falls meanwhile."""
    for name, change in (("first reading", {"tokens": 1e-3}), ("not falling", {"loss": 1.5})):
        run = tmp_path / name
        shutil.copytree(shop.run("over-fitting"), run)
        log = run / "log.jsonl"
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        for line in lines:
            if "tokens" in change:
                line["tokens"] *= change["tokens"]
            elif line.get("loss") is not None:
                line["loss"] = change["loss"]
        log.write_text("".join(json.dumps(line) + "\n" for line in lines))
        assert "over-fitting" not in [finding.name for finding in examine(run).findings]


def test_over_fitting_is_seen_however_much_the_training_masks(shop, tmp_path):
    """The loss of a training that masks more is higher all along; what tells is that the two move apart."""
    run = tmp_path / "run"
    shutil.copytree(shop.run("over-fitting"), run)
    log = run / "log.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    heldout = min(line["eval_loss"] for line in lines if "eval_loss" in line)
    for line in lines:
        line["loss"] += heldout
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = {finding.name: finding for finding in examine(run).findings}
    assert found["over-fitting"].evidence["training_loss"] > found["over-fitting"].evidence["heldout_loss"]
    assert found["over-fitting"].evidence["gap_grown"] > 0.1
