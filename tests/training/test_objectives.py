"""Objectives: several losses, sums, several models, state, and what all of that leaves in a run."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from killed_runs import assert_same, whole_and_resumed

from mini_bert import CheckpointError, ConfigError, MiniBERT, ModelConfig, import_file
from mini_bert.analysis.doctor.run_record import RunRecord
from mini_bert.checks.heads import check_objective
from mini_bert.core.gradients import mlm_gradients
from mini_bert.core.registry import parse_sum, restored_registry
from mini_bert.objectives.making import objective_from
from mini_bert.report.run_page import run_page
from mini_bert.training.config import TrainingConfig, make_objective, make_optimiser
from mini_bert.training.overfit import overfit
from mini_bert.training.runs.log import read_log
from mini_bert.training.runs.run import start_run
from mini_bert.training.update import BatchGradients, Update
from mini_bert.workers import Workers, workers

SUM = "masked + 0.5 swapped"
SMALL = ModelConfig(num_layers=2, num_heads=2, hidden_size=8, intermediate_size=12, vocab_size=20, max_seq_length=8,
                    activation="gelu", dropout=0.1, attention_dropout=0.1, init_std=0.3)


@pytest.fixture(autouse=True)
def plugins():
    with restored_registry():
        import_file(Path(__file__).parent / "plugin_objectives.py")
        yield


# -------------------------------------------------------------------- sums


@pytest.mark.parametrize("words", ["swapped", "two_models", SUM, "2 masked + swapped(std=0.5)", "adaptive"])
def test_the_gradient_of_every_loss_agrees_with_finite_differences(words):
    results = list(check_objective(words, SMALL))
    assert len(results) > 10
    assert max(result.error for result in results) < 1e-6


def test_a_backward_that_forgets_its_factor_is_noticed(monkeypatch):
    monkeypatch.setattr("mini_bert.objectives.masked.mlm_gradients",
                        lambda *given, **options: mlm_gradients(*given, **{**options, "factor": 1.0}))
    assert min(result.error for result in check_objective("masked", SMALL)) > 1e-2


def test_each_loss_is_divided_by_its_own_count_and_weighted(corpus, model_config, settings):
    config = replace(settings, objective=SUM, micro_batch_size=3).resolved(model_config)
    model = MiniBERT(model_config, dtype=np.float64)
    objective = make_objective(config, model)
    batch = objective.batches(corpus, config)[0]
    expected = 0.0
    for weight, one, own in zip((1.0, 0.5), objective.objectives, batch, strict=True):
        grads, count = objective.params.zeros_like(), 0
        for part in one.micro_batches(own):
            one.add_gradients(part, grads, None, {one.main: 1.0})
            count += one.counts(part)[one.main]
        expected += weight * grads.flat / count
    found = []
    for threads in (1, 2, 3):
        with workers(threads) as team:
            gradients = BatchGradients(objective, team)
            losses = gradients.compute(batch)
            found.append(gradients.gradients.flat.copy() / gradients.count)
    assert losses["masked"].count != losses["swapped"].count == config.batch_size
    np.testing.assert_allclose(found[0], expected, rtol=1e-9, atol=1e-13)
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


def test_a_batch_without_terms_of_the_main_loss_still_teaches_the_other(corpus, model_config, settings):
    config = replace(settings, objective=SUM).resolved(model_config)
    objective = make_objective(config, MiniBERT(model_config))
    masked, swapped = objective.batches(corpus, config)[0]
    nothing = masked._replace(mask_positions=np.zeros_like(masked.mask_positions))
    update = Update(objective, make_optimiser(config, objective.params), Workers(1))
    before = objective.params["swapped.W"].copy()
    result = update.step((nothing, swapped), (0, 0), 1e-2)
    assert result.finite
    assert result.loss.count == 0
    assert result.total == pytest.approx(0.5 * result.losses["swapped"].mean)
    assert not np.array_equal(objective.params["swapped.W"], before)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_killed_run_of_a_sum_ends_with_the_same_bytes(model_config, settings, corpus, tmp_path, threads):
    whole, resumed = whole_and_resumed(model_config, replace(settings, objective=SUM), corpus, tmp_path, threads)
    assert_same(whole, resumed)
    assert any(name.startswith("swapped.") for name in whole.objective.params)
    np.testing.assert_array_equal(MiniBERT.load(tmp_path / "killed" / "final").params.flat, whole.model.params.flat)


def test_every_loss_of_a_sum_is_logged_and_evaluated_under_its_name(model_config, settings, corpus, run):
    trainer = start_run(model_config, replace(settings, objective=SUM), corpus.directory, run)
    trainer.train()
    records = list(read_log(run))
    for record in records:
        assert set(record["losses"]) == {"masked", "swapped"}
        assert record["loss"] == record["losses"]["masked"]
        assert record["total_loss"] == pytest.approx(record["losses"]["masked"] + 0.5 * record["losses"]["swapped"])
    last = records[-1]
    assert last["eval_loss"] == last["eval_losses"]["masked"]
    assert 0 <= last["masked_accuracy"] <= 1
    alone = trainer.objective.objectives[1]
    parts = alone.heldout(corpus, trainer.config)
    assert last["eval_losses"]["swapped"] == pytest.approx(alone.evaluate(parts, Workers(1))["swapped"], rel=1e-6)
    assert trainer.state.best_loss == pytest.approx(min(r["eval_loss"] for r in records if "eval_loss" in r))
    assert trainer.baselines == start_run(model_config, settings, corpus.directory, run / "usual").baselines
    page = run_page(RunRecord.read(run))
    assert all(word in page for word in ("each loss of the objective", "swapped, held out"))


def test_the_main_loss_is_the_one_that_is_named(model_config, settings, corpus, run):
    config = replace(settings, objective=SUM, main_loss="swapped")
    start_run(model_config, config, corpus.directory, run).train()
    last = list(read_log(run))[-1]
    assert last["loss"] == last["losses"]["swapped"]
    assert last["eval_loss"] == last["eval_losses"]["swapped"]


def test_one_objective_of_weight_one_is_itself(model_config):
    model = MiniBERT(model_config)
    assert type(objective_from("masked", model)).__name__ == "MaskedLM"
    assert objective_from("2 masked", model).losses == {"masked": 2.0}
    assert [(weight, str(word)) for weight, word in parse_sum("a + 0.5 b(k=2)+1e-3 c")] == \
        [(1.0, "a"), (0.5, "b(k=2)"), (0.001, "c")]


@pytest.mark.parametrize(("changes", "said"), [
    ({"objective": "masked + masked"}, "two terms of the sum have a loss masked"),
    ({"objective": "0 masked"}, "weight must be above zero, not 0"),
    ({"objective": "masked + -1 swapped"}, "weight must be above zero, not -1"),
    ({"objective": "1e999 masked"}, "weight must be above zero, not inf"),
    ({"objective": ""}, "at least one word"), ({"objective": "masked swapped"}, r"'\+' is expected before 'swapped'"),
    ({"objective": "masked + 0.5"}, "a word is expected at its end"),
    ({"objective": "masked + unknown"}, "'unknown' is not a choice"),
    ({"objective": "masked(speed=3)"}, r"masked\(speed=3\) cannot be made: .*its options are none"),
    ({"objective": SUM, "main_loss": "accuracy"}, "there is no loss 'accuracy'; the objective has masked, swapped"),
    ({"optimiser": "adamw(speed=3)"}, r"adamw\(speed=3\) cannot be made"),
    ({"optimiser": "adamw(beta1=2)"}, r"beta1 must be in \[0, 1\)"),
    ({"schedule": "linear(speed=3)"}, r"linear\(speed=3\) cannot be made"),
    ({"init": "normal(speed=3)"}, "normal takes no options")])
def test_wrong_words_are_refused_in_a_sentence_before_anything_is_written(model_config, corpus, run, changes, said):
    with pytest.raises(ConfigError, match=said):
        start_run(model_config, TrainingConfig.from_dict({"steps": 2, **changes}), corpus.directory, run)
    assert not run.exists()


# -------------------------------------------------------------------- several models


def test_two_models_learn_in_one_buffer_and_are_saved(model_config, settings, corpus, tmp_path):
    config = replace(settings, objective="two_models")
    whole, resumed = whole_and_resumed(model_config, config, corpus, tmp_path, threads=2)
    assert_same(whole, resumed)
    objective, generator = resumed.objective, resumed.objective.generator
    assert np.shares_memory(generator.params["token_embeddings"], resumed.model.params["token_embeddings"])
    assert np.shares_memory(generator.params["W_Q_0"], objective.params["generator.W_Q_0"])
    start = MiniBERT(generator.config, seed=1).params["W_Q_0"]
    assert not np.array_equal(generator.params["W_Q_0"], start)
    np.testing.assert_array_equal(generator.params["W_Q_0"], whole.objective.generator.params["W_Q_0"])
    saved = MiniBERT.load(tmp_path / "killed" / "final")
    np.testing.assert_array_equal(saved.params.flat, whole.model.params.flat)
    record = list(read_log(tmp_path / "whole"))[-1]
    assert set(record["losses"]) == {"masked", "generator", "length"}
    assert record["total_loss"] == pytest.approx(record["losses"]["masked"] + 3 * record["losses"]["generator"])
    assert {"embeddings", "layer_1", "generator.layer_0"} <= record["update_ratio"].keys()


def test_a_model_joined_with_others_can_be_frozen_by_its_prefix(model_config, settings, corpus, run):
    config = replace(settings, objective="two_models", freeze="generator.layer_0", layer_decay=0.5)
    trainer = start_run(model_config, config, corpus.directory, run)
    before = trainer.objective.generator.params["W_Q_0"].copy(), trainer.model.params["W_Q_0"].copy()
    trainer.train()
    assert np.array_equal(trainer.objective.generator.params["W_Q_0"], before[0])
    assert not np.array_equal(trainer.model.params["W_Q_0"], before[1])


# -------------------------------------------------------------------- state


@pytest.mark.parametrize("words", ["adaptive", "masked + adaptive"])
def test_an_objective_that_adapts_goes_on_where_it_was(model_config, settings, corpus, tmp_path, words):
    whole, resumed = whole_and_resumed(model_config, replace(settings, objective=words), corpus, tmp_path, threads=2)
    assert_same(whole, resumed)
    states = [trainer.objective.state() for trainer in (whole, resumed)]
    for name, value in states[0].items():
        np.testing.assert_equal(states[1][name], value)
    heard = next(value for name, value in states[0].items() if name.endswith("heard"))
    assert [step for step, _ in heard] == list(range(1, 13))
    assert [step for step, figure in heard if figure is not None] == [6, 12]


def test_a_state_that_cannot_be_written_is_answered_in_a_sentence(model_config, settings, corpus, run):
    trainer = start_run(model_config, replace(settings, objective="adaptive"), corpus.directory, run)
    trainer.objective.heard = {1, 2}
    with pytest.raises(CheckpointError, match=r"objective's state cannot be written: .*JSON"):
        trainer.save()


def test_one_batch_is_learned_by_heart_by_any_optimiser_and_objective(model_config, settings, corpus):
    config = replace(settings, objective=SUM, optimiser="sgd(momentum=0.9)", steps=3).resolved(model_config)
    model = MiniBERT(replace(model_config, dropout=0.0))
    objective = make_objective(config, model)
    loss, steps = overfit(model, objective.batches(corpus, config)[0], config, objective=objective)
    assert steps == 3
    assert np.isfinite(loss)
