"""Settings that change over a run: masking, lengths, batch sizes and sequences in real runs, resumed bit for bit."""

from dataclasses import replace

import numpy as np
import pytest
from killed_runs import assert_same, whole_and_resumed

from mini_bert import ConfigError, InputError, MiniBERT
from mini_bert.objectives.masked import heldout_batches
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


# -------------------------------------------------------------------- lengths, batch sizes and sequences


PHASES = {"sequences": "sentences until 0.5, packed", "max_seq_length": "8 until 0.75, 16", "bucket": True,
          "batch_size": "4 -> 8 over 0.5", "micro_batch_size": 4}


def test_phases_begin_at_their_shares(corpus, model_config, settings):
    batches = batches_of(corpus, model_config, replace(settings, **PHASES))
    kinds = [(type(stage.sequences).__name__, stage.sequences.T)
             for stage in (batches.stage(Step(step, 100)) for step in (0, 49, 50, 74, 75, 99))]
    assert kinds == 2 * [("SentenceSequences", 8)] + 2 * [("PackedSequences", 8)] + 2 * [("PackedSequences", 16)]
    assert batches[Step(99, 100)].input_ids.shape[1] == 16
    assert batches[Step(0, 100)].input_ids.shape[1] <= 8


def test_a_growing_batch_takes_more_of_the_places_of_its_step(corpus, model_config, settings):
    settings = replace(settings, batch_size="2 -> 8", max_seq_length=16)
    growing = batches_of(corpus, model_config, settings)
    largest = batches_of(corpus, model_config, replace(settings, batch_size=8))
    for step, size in ((0, 2), (5, 5), (10, 8)):
        batch = growing[Step(step, 10)]
        assert len(batch.input_ids) == size
        np.testing.assert_array_equal(growing.numbers(Step(step, 10))[1], largest.numbers(step)[1][:size])
    assert len(growing) == len(largest)


def test_bucketed_batches_grow_in_tokens(corpus, model_config, settings):
    settings = replace(settings, batch_size="4 -> 16", sequences="sentences", bucket=True)
    batches = batches_of(corpus, model_config, settings)
    tokens = [int(batches[Step(step, 4)].attention_mask.sum()) for step in range(5)]
    assert tokens[-1] > 2.5 * tokens[0]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_killed_run_in_phases_ends_with_the_same_bytes(model_config, settings, corpus, tmp_path, threads):
    assert_same(*whole_and_resumed(model_config, replace(settings, **PHASES, **MASKING), corpus, tmp_path, threads))
    columns = [(record["sequences"], record["max_seq_length"], record["batch_size"])
               for record in read_log(tmp_path / "whole")]
    assert columns == [("sentences", 8, 5), ("sentences", 8, 7), ("packed", 8, 8), ("packed", 16, 8)]


def test_held_out_text_is_as_at_the_end_of_the_run(corpus, model_config, settings):
    settings = replace(settings, **PHASES).resolved(model_config)
    phased = heldout_batches(corpus, settings)
    packed = heldout_batches(corpus, replace(settings, sequences="packed", max_seq_length=16))
    for one, other in zip(phased, packed, strict=True):
        np.testing.assert_array_equal(one.input_ids, other.input_ids)


def test_micro_batches_have_a_bounded_number_of_tokens_and_are_two_at_least(corpus, model_config, settings):
    settings = replace(settings, **PHASES).resolved(model_config)
    objective = make_objective(settings, MiniBERT(model_config, seed=None))
    batches = objective.batches(corpus, settings)
    for step in range(0, 100, 7):
        parts = objective.micro_batches(batches[Step(step, 100)])
        assert len(parts) >= 2
        assert max(part.input_ids.size for part in parts) <= 4 * 16


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


def test_no_length_may_be_more_than_the_model_takes(model_config):
    with pytest.raises(ConfigError, match=r"8 until 0\.9, 17 is more than the model takes, model\.max_seq_length=16"):
        TrainingConfig(max_seq_length="8 until 0.9, 17").resolved(model_config)


@pytest.mark.parametrize(("wrong", "reason"), [
    ({"masking_rate": "0.4 -> 1.5"}, "masking_rate must be between 0 and 1, not 1.5"),
    ({"masking_rate": "0.4 ->"}, "'0.4 ->' is not a schedule"),
    ({"masking_rate": "nan"}, "masking_rate must be between 0 and 1, not nan"),
    ({"masking_hidden": 0.9, "masking_random": 0.2}, "together at most 1"),
    ({"masking_hidden": -0.1}, "at least 0"),
    ({"batch_size": "16 -> 0"}, "batch_size must be at least 1"),
    ({"max_seq_length": "0 until 0.5, 16"}, "max_seq_length must be at least 1"),
    ({"sequences": "sentences until 0.5, poems"}, "sequences: 'poems' is not a choice"),
    ({"sequences": 5}, "sequences must be a word, not 5"),
])
def test_impossible_schedules_are_refused_before_anything_is_written(wrong, reason):
    with pytest.raises((ConfigError, InputError), match=reason):
        TrainingConfig(**wrong)
