"""Settings that change over a run: masking, lengths, batch sizes and sequences in real runs, resumed bit for bit."""

from dataclasses import replace

import numpy as np
import pytest
from killed_runs import assert_same, whole_and_resumed

from mini_bert import ConfigError, InputError, MiniBERT
from mini_bert.text.schedule import Step
from mini_bert.training.config import TrainingConfig, load_run_config, make_objective
from mini_bert.training.finder import find_learning_rate
from mini_bert.training.runs.log import read_log
from mini_bert.training.runs.run import read_run, resume_run, start_run

MASKING = {"masking_rate": "0.5 -> 0.1", "masking_hidden": 0.9, "masking_random": 0.1}


def batches_of(corpus, model_config, settings):
    settings = settings.resolved(model_config)
    return make_objective(settings, MiniBERT(model_config, seed=None)).batches(corpus, settings)


def shares_masked(batches, steps, total):
    """The share of ordinary tokens that is masked at these steps of a run."""
    found = []
    for step in steps:
        batch = batches[Step(step, total)]
        found.append(batch.mask_positions.sum() / (batch.target_ids > 4).sum())
    return found


# -------------------------------------------------------------------- masking


def test_the_masking_rate_follows_its_schedule(corpus, model_config, settings):
    batches = batches_of(corpus, model_config, replace(settings, masking_rate="0.5 -> 0.1"))
    assert shares_masked(batches, [0, 50, 99], 100) == pytest.approx([0.5, 0.3, 0.1], abs=0.04)
    constant = batches_of(corpus, model_config, replace(settings, masking_rate=0.3))
    for one, other in zip(batches[Step(50, 100)], constant[50], strict=True):
        np.testing.assert_array_equal(one, other)


def test_nothing_is_kept_where_the_shares_say_so(corpus, model_config, settings):
    never = batches_of(corpus, model_config, replace(settings, masking_hidden=1.0, masking_random=0.0))
    electra = batches_of(corpus, model_config, replace(settings, masking_hidden=0.85, masking_random=0.0))
    masks = [[batches[step].input_ids[batches[step].mask_positions] for step in range(100)] for batches in
             (never, electra)]
    assert (np.concatenate(masks[0]) == 4).all()
    assert (np.concatenate(masks[1]) == 4).mean() == pytest.approx(0.85, abs=0.03)
    kept = [batch.target_ids[batch.mask_positions] for batch in map(electra.__getitem__, range(100))]
    seen, true = np.concatenate(masks[1]), np.concatenate(kept)
    assert (seen == true)[seen != 4].all()


@pytest.mark.parametrize("threads", [1, 2])
def test_a_killed_run_with_a_masking_schedule_ends_with_the_same_bytes(model_config, settings, corpus, tmp_path,
                                                                        threads):
    whole, resumed = whole_and_resumed(model_config, replace(settings, **MASKING), corpus, tmp_path, threads)
    assert_same(whole, resumed)
    plain = start_run(model_config, settings, corpus.directory, tmp_path / "plain")
    plain.train()
    assert not np.array_equal(plain.model.params.flat, whole.model.params.flat)


def test_what_changes_is_a_column_of_the_log(model_config, settings, corpus, run):
    start_run(model_config, replace(settings, **MASKING), corpus.directory, run).train()
    assert [(record["step"], record["masking_rate"]) for record in read_log(run)] == [
        (step, pytest.approx(0.5 - 0.4 * (step - 1) / 12, abs=1e-6)) for step in (3, 6, 9, 12)]
    start_run(model_config, settings, corpus.directory, run.parent / "plain").train()
    assert all("masking_rate" not in record for record in read_log(run.parent / "plain"))


def test_a_budget_of_time_runs_through_the_whole_schedule(model_config, settings, corpus, run):
    trainer = start_run(model_config, replace(settings, budget="1s", **MASKING), corpus.directory, run)
    trainer.train()
    rates = [record["masking_rate"] for record in read_log(run)]
    assert rates[0] > 0.4
    assert rates[-1] < 0.15
    assert resume_run(run).config.masking_rate == "0.5 -> 0.1"


def test_the_search_for_a_rate_stays_at_the_beginning(model_config, settings, corpus):
    settings = replace(settings, masking_rate="0.5 -> 0.1").resolved(model_config)
    searches = []
    for rate in ("0.5 -> 0.1", 0.5):
        config = replace(settings, masking_rate=rate)
        model = MiniBERT(model_config)
        objective = make_objective(config, model)
        searches.append(find_learning_rate(model, objective.batches(corpus, config), config, steps=10,
                                           objective=objective))
    assert searches[0] == searches[1]


# -------------------------------------------------------------------- the config


def test_numbers_stay_numbers_and_schedules_are_words(tmp_path):
    (tmp_path / "a.yaml").write_text("model: debug\ntraining:\n  masking_rate: 0.4 -> 0.15\n")
    assert load_run_config(tmp_path / "a.yaml")[1].masking_rate == "0.4 -> 0.15"
    assert load_run_config("mini", ["training.masking_rate=3e-1"])[1].masking_rate == 0.3
    assert TrainingConfig(masking_rate="0.2 until 0.5, 0.2").masking_rate == 0.2
    assert TrainingConfig(masking_rate="0.2->0.1").at(0.5).masking_rate == pytest.approx(0.15)


def test_a_run_keeps_its_schedules_and_can_be_given_others(model_config, settings, corpus, run):
    start_run(model_config, replace(settings, **MASKING), corpus.directory, run).train()
    assert read_run(run)["training"]["masking_rate"] == "0.5 -> 0.1"
    resume_run(run, changes=["training.masking_rate=0.2", "training.steps=14"]).train()
    assert read_run(run)["training"]["masking_rate"] == 0.2


@pytest.mark.parametrize(("wrong", "reason"), [
    ({"masking_rate": "0.4 -> 1.5"}, "masking_rate must be between 0 and 1, not 1.5"),
    ({"masking_rate": "0.4 ->"}, "'0.4 ->' is not a schedule"),
    ({"masking_rate": "nan"}, "masking_rate must be between 0 and 1, not nan"),
    ({"masking_hidden": 0.9, "masking_random": 0.2}, "together at most 1"),
    ({"masking_hidden": -0.1}, "at least 0"),
])
def test_impossible_schedules_are_refused_before_anything_is_written(wrong, reason):
    with pytest.raises((ConfigError, InputError), match=reason):
        TrainingConfig(**wrong)
