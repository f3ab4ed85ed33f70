"""The first outline's names for variants, optimisers and ways to train, as it calls them."""

import numpy as np
import pytest

from mini_bert import (
    AdamW,
    AdvancedMiniBERT,
    AdvancedOptimizer,
    ConfigError,
    InputError,
    MiniBERT,
    MiniBERTGradients,
    ModelConfig,
    TrainingConfig,
    add_auxiliary_tasks,
    compute_layer_wise_learning_rates,
    implement_adaptive_masking,
    implement_curriculum_learning,
)
from mini_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary

SMALL = ModelConfig(num_layers=1, num_heads=2, hidden_size=16, intermediate_size=32, vocab_size=40, max_seq_length=16)
IDS = np.random.default_rng(0).integers(5, 40, (2, 12))


def gradients(model):
    grads = MiniBERTGradients(model)
    _, count = grads.accumulate_mlm(IDS, IDS, IDS % 3 == 0)
    grads.gradients.flat /= count
    return grads.gradients


@pytest.mark.parametrize(("method", "expected"), [
    ("add_relative_position_encoding", {"position_embeddings": "none", "score_terms": "relative_keys(reach=16)"}),
    ("implement_rotary_embeddings", {"position_embeddings": "none", "score_terms": "rotary"}),
    ("add_gated_attention", {"attention": "head_gated"})])
def test_a_method_changes_the_model_and_keeps_the_numbers_that_it_still_has(method, expected):
    model = AdvancedMiniBERT(SMALL, seed=3)
    before = model.forward(IDS)[0]
    getattr(model, method)()
    assert {name: getattr(model.config, name) for name in expected} == expected
    assert np.array_equal(model.params["W_Q_0"], MiniBERT(SMALL, seed=3).params["W_Q_0"])
    assert not np.allclose(model.forward(IDS)[0], before)
    assert np.isfinite(gradients(model).flat).all()


def test_variants_combine():
    model = AdvancedMiniBERT(SMALL).implement_rotary_embeddings().add_gated_attention()
    assert (model.config.score_terms, model.config.attention) == ("rotary", "head_gated")
    assert "position_embeddings" not in model.params


def test_the_parts_of_an_optimiser_become_the_words_of_a_config():
    made = AdvancedOptimizer(MiniBERT(SMALL).params, learning_rate=1e-4)
    assert made.config().optimiser == "adamw"
    made.implement_lookahead_wrapper(k=3).add_adaptive_gradient_clipping().implement_lion_optimizer()
    found = made.config(TrainingConfig(steps=7))
    assert (found.optimiser, found.clipping) == ("lookahead(lion, k=3, alpha=0.5)", "adaptive(limit=0.01)")
    assert (found.steps, found.learning_rate) == (7, 1e-4)
    with pytest.raises(ConfigError):
        made.add_adaptive_gradient_clipping("none")
    assert made.config().clipping == "adaptive(limit=0.01)"


def test_without_parts_it_is_adamw_and_with_lion_every_weight_moves_by_the_rate():
    plain, other = MiniBERT(SMALL), MiniBERT(SMALL)
    AdvancedOptimizer(plain.params, 1e-3, max_grad_norm=0.0).step(gradients(plain))
    AdamW(other.params, 1e-3).step(gradients(other))
    assert np.array_equal(plain.params.flat, other.params.flat)

    model = MiniBERT(SMALL)
    before, grads = model.params["W1_0"].copy(), gradients(model)
    lion = AdvancedOptimizer(model.params, 1e-3, weight_decay=0.0).implement_lion_optimizer()
    lion.step(grads)
    np.testing.assert_allclose(np.abs(model.params["W1_0"] - before)[grads["W1_0"] != 0], 1e-3, rtol=1e-3)
    with pytest.raises(ConfigError, match="has taken steps"):
        lion.implement_lookahead_wrapper()


def test_adaptive_clipping_limits_each_unit_by_its_weights():
    model = MiniBERT(SMALL)
    grads = gradients(model)
    grads.flat *= 1e3
    AdvancedOptimizer(model.params).add_adaptive_gradient_clipping(0.05).step(grads)
    columns = np.linalg.norm(grads["W1_0"], axis=0) / np.linalg.norm(MiniBERT(SMALL).params["W1_0"], axis=0)
    assert columns.max() <= 0.05 * 1.001


def test_a_curriculum_is_a_config_whose_examples_grow():
    for schedule in ("16 until 0.5, 64", [16, 64], {"max_seq_length": "16 until 0.5, 64"}):
        config = implement_curriculum_learning(schedule, TrainingConfig(steps=9))
        assert [config.at(share).max_seq_length for share in (0.0, 0.4, 0.6, 1.0)] == [16, 16, 64, 64]
        assert config.steps == 9
    easy = implement_curriculum_learning("rarity(pacing=root, start=0.1)", TrainingConfig(steps=9))
    assert easy.curriculum == "rarity(pacing=root, start=0.1)"
    assert easy.changing(0.0)["curriculum_share"] == pytest.approx(0.1)
    for wrong in ("easy first", [], {"difficulty": 3}):
        with pytest.raises(ConfigError):
            implement_curriculum_learning(wrong)


def test_masking_adapts_to_the_models_accuracy():
    assert implement_adaptive_masking(0.0).rate == pytest.approx(0.4)
    assert implement_adaptive_masking(1.0).rate == pytest.approx(0.15)
    accuracy = iter((0.0, 0.0, 0.5))
    masking = implement_adaptive_masking(lambda step: next(accuracy))
    assert [masking.rate(step) for step in (0, 1)] == pytest.approx([0.4, 0.275])
    with pytest.raises(InputError, match="between 0 and 1"):
        implement_adaptive_masking(60)


def test_masking_adapts_to_what_the_model_finds_of_each_token():
    asked = np.full(40, 10)
    found = np.where(np.arange(40) < 20, 10, 0)
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *(chr(97 + i) for i in range(26)), *"123456789"])
    ids = np.random.default_rng(1).integers(5, 40, (2000, 20))
    _, chosen = implement_adaptive_masking((asked, found))(ids, vocabulary, seed=0, epoch=0, sequences=np.arange(2000))
    assert (chosen.sum(axis=1) == 3).all()
    assert chosen[ids >= 20].mean() > 3 * chosen[ids < 20].mean()
    for wrong in ((asked, asked + 1), (asked, found, found), (asked, found / 2)):
        with pytest.raises(InputError, match="two rows of whole numbers"):
            implement_adaptive_masking(wrong)


def test_auxiliary_tasks_give_the_model_their_heads_and_are_learned_beside_hidden_words():
    model = MiniBERT(SMALL, seed=3)
    made, objective = add_auxiliary_tasks(model, weight=0.5)
    assert objective.losses == {"masked": 1.0, "next_sentence": 0.5, "token_order": 0.5}
    assert objective.main == "masked"
    assert np.array_equal(made.params["W_Q_0"], model.params["W_Q_0"])
    assert made.config.sentence_head == "pooled"
    assert add_auxiliary_tasks(model, ["token_order"])[0] is model            # it needs no other head
    with pytest.raises(ConfigError):
        add_auxiliary_tasks(model, ["fortune_telling"])


def test_layers_have_learning_rates_of_their_own():
    rates = compute_layer_wise_learning_rates(dict(gradients(MiniBERT(SMALL))), 1e-3)
    assert set(rates) == set(MiniBERT(SMALL).params)
    assert len(set(rates.values())) > 1
