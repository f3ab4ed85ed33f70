"""ELECTRA's objective: draws, labels, what each model learns from, and what a run leaves."""

from dataclasses import replace

import numpy as np
import pytest

from mini_bert import ConfigError, InputError, MiniBERT, load
from mini_bert.analysis.doctor.doctor import examine
from mini_bert.analysis.doctor.run_record import RunRecord
from mini_bert.checks.heads import check_objective
from mini_bert.checks.models import shrink
from mini_bert.configs import load_preset
from mini_bert.inference.fill_mask import fill_mask
from mini_bert.objectives.making import objective_from
from mini_bert.objectives.replaced_tokens import drawn, generator_config, two_classes, with_replacements
from mini_bert.report.run_page import run_page
from mini_bert.training.config import make_objective
from mini_bert.training.runs.log import read_log
from mini_bert.training.runs.run import start_run
from mini_bert.workers import Workers


@pytest.fixture
def config(model_config):
    return replace(model_config, mlm_head="replaced_tokens", embedding_size=8, embedding_layernorm=True, token_types=2,
                   dropout=0.0)


def prepared(config, settings, corpus, words="replaced_tokens(generator=0.5)"):
    made = replace(settings, objective=words).resolved(config)
    objective = make_objective(made, MiniBERT(config, dtype=np.float64))
    return objective, objective.batches(corpus, made), made


def test_draws_follow_the_distribution_of_the_weights():
    weights = np.tile([0.0, 2.0, 1.0, 5.0, 0.0], (20_000, 1))
    found = np.bincount(drawn(weights, np.random.default_rng(0).random(len(weights))), minlength=5) / len(weights)
    assert found == pytest.approx([0, 0.25, 0.125, 0.625, 0], abs=0.02)
    assert drawn(weights[:2], np.array([0.0, 1.0])).tolist() == [1, 4]


def test_a_token_is_replaced_if_it_differs_from_the_original(config, settings, corpus):
    objective, batches, _ = prepared(config, settings, corpus)
    batch = batches[0]
    V, chosen = config.vocab_size, batch.mask_positions
    right = np.eye(V)[batch.target_ids[chosen]]                 # a generator that is certain, and right
    found = with_replacements(batch, right)
    assert np.array_equal(found.ids, batch.target_ids)
    assert not found.labels.any()
    wrong = np.roll(right, 1, axis=1)
    found = with_replacements(batch, wrong)
    assert np.array_equal(found.ids != batch.target_ids, chosen)
    assert np.array_equal(found.labels, chosen[batch.attention_mask])
    assert objective.counts(batch) == {"generator": chosen.sum(), "replaced_tokens": batch.attention_mask.sum()}


def test_of_the_chosen_tokens_85_percent_are_masked_and_the_others_kept(config, settings, corpus):
    _, batches, _ = prepared(config, replace(settings, batch_size=64), corpus)
    masked = kept = 0
    for step in range(20):
        batch = batches[step]
        hidden = batch.input_ids == corpus.tokenizer.vocabulary.mask
        assert not (hidden & ~batch.mask_positions).any()
        assert np.array_equal(batch.input_ids[~hidden], batch.target_ids[~hidden])
        masked, kept = masked + hidden.sum(), kept + (batch.mask_positions & ~hidden).sum()
    assert masked / (masked + kept) == pytest.approx(0.85, abs=0.02)


def test_two_classes_are_the_logistic_function():
    z = np.array([-30.0, -1.0, 0.0, 2.5])
    losses = np.log(np.exp(two_classes(z)).sum(axis=1)) - two_classes(z)[:, 1]
    np.testing.assert_allclose(losses, np.log1p(np.exp(-z)), rtol=1e-12)


def test_the_generator_learns_from_its_own_loss_alone(config, settings, corpus):
    objective, batches, _ = prepared(config, settings, corpus)
    part = objective.micro_batches(batches[0])[0]
    found = []
    for factor in (0.0, 1.0):
        grads = objective.params.zeros_like()
        objective.add_gradients(part, grads, None, {"generator": 1.0, "replaced_tokens": factor})
        found.append(grads)
    own = [name for name in objective.params if name.startswith("generator.")]
    assert len(own) > 30
    assert all(np.array_equal(found[0][name], found[1][name]) for name in own)
    assert all(found[0][name].any() for name in own)
    assert not found[0]["replaced_W"].any()
    assert found[1]["replaced_W"].any()
    assert not np.array_equal(found[0]["token_embeddings"], found[1]["token_embeddings"])        # both learn these


def test_the_models_have_the_embeddings_and_their_layernorm_in_common(config):
    objective = objective_from("replaced_tokens", MiniBERT(config))
    for name in ("token_embeddings", "position_embeddings", "token_type_embeddings", "embedding_ln_gamma",
                 "embedding_ln_beta"):
        assert np.shares_memory(objective.model.params[name], objective.discriminator.params[name])
    for name in ("embedding_projection_W", "W_Q_0"):
        assert not np.shares_memory(objective.model.params[name], objective.discriminator.params[name])
    made = generator_config(load_preset("electra-small"), 0.25)
    assert (made.hidden_size, made.num_heads, made.intermediate_size, made.num_layers) == (64, 1, 256, 12)
    assert made.embedding_width == 128


def test_the_preset_has_gradients_that_agree_with_finite_differences():
    results = list(check_objective("replaced_tokens", shrink(load_preset("mini-electra"), load_preset("debug")), 1))
    assert len(results) > 60
    assert max(result.error for result in results) < 1e-6


def test_a_run_leaves_a_discriminator_and_its_generator(config, settings, corpus, run):
    trainer = start_run(config, replace(settings, objective="replaced_tokens(generator=0.5)"), corpus.directory, run)
    assert not trainer.baselines
    trainer.train()
    last = list(read_log(run))[-1]
    assert set(last["losses"]) == set(last["eval_losses"]) == {"generator", "replaced_tokens"}
    assert last["eval_loss"] == last["eval_losses"]["replaced_tokens"]
    assert last["total_loss"] == pytest.approx(last["losses"]["generator"] + 50 * last["losses"]["replaced_tokens"])
    assert 0.5 < last["majority_accuracy"] < 1
    assert 0 <= last["replaced_tokens_recall"] <= 1
    for name in ("best", "final"):
        model, generator = load(run / name), load(run / "generator" / name)
        assert model.modules.finds_replaced
        assert np.array_equal(model.params["token_embeddings"], generator.params["token_embeddings"])
        assert len(fill_mask(generator, corpus.tokenizer, "the [MASK] sat", top=2)[0]) == 2
        with pytest.raises(InputError, match="predicts no words; the generator"):
            fill_mask(model, corpus.tokenizer, "the [MASK] sat")
    np.testing.assert_array_equal(generator.params["W_Q_0"], trainer.objective.params["generator.W_Q_0"])


def test_a_run_without_a_loss_of_words_is_examined_and_reported(config, settings, corpus, run):
    start_run(config, replace(settings, objective="replaced_tokens"), corpus.directory, run).train()
    found = examine(run)
    assert found.baselines.uniform is None
    assert "its main loss does not predict words" in found.left_out["still at uniform"]
    page = run_page(RunRecord.read(run))
    for words in ("generator, held out", "majority accuracy", "replaced tokens recall",
                  "cannot be compared with guessing by frequency"):
        assert words in page


def test_the_figures_are_those_of_the_predictions(config, settings, corpus):
    objective, _, made = prepared(config, settings, corpus)
    parts = objective.heldout(corpus, made)
    objective.discriminator.params["replaced_W"][...] = 0
    objective.discriminator.params["replaced_b"][...] = -3.0    # it says of every token that it was not replaced
    found = objective.evaluate(parts, Workers(2))
    assert found["replaced_tokens_accuracy"] == found["majority_accuracy"] < 1
    assert found["replaced_tokens_recall"] == 0
    share = 1 - found["majority_accuracy"]
    assert found["replaced_tokens"] == pytest.approx(np.log1p(np.exp(-3)) + 3 * share)
    objective.discriminator.params["replaced_b"][...] = 3.0
    assert objective.evaluate(parts, Workers(1))["replaced_tokens_recall"] == 1


@pytest.mark.parametrize(("words", "changes", "said"), [
    ("replaced_tokens", {"mlm_head": "bert"}, "model.mlm_head must be replaced_tokens, not bert"),
    ("masked", {}, "masked needs a model with a head for masked language modelling"),
    ("replaced_tokens(generator=0)", {}, "generator must be above 0 and at most 1, not 0"),
    ("replaced_tokens(weight=-1)", {}, "weight must be above 0")])
def test_a_model_that_cannot_learn_it_is_refused_in_a_sentence(config, words, changes, said):
    with pytest.raises(ConfigError, match=said):
        objective_from(words, MiniBERT(replace(config, **changes)))
