"""From the loss to the gradients: accumulation, tied weights, losses and their checks."""

import numpy as np
import pytest

from mini_bert import (
    InputError,
    MiniBERT,
    MiniBERTGradients,
    ModelConfig,
    NumericalError,
    gradient_check,
    load_preset,
    mlm_cross_entropy,
)
from mini_bert.checks.check_all import models_to_check
from mini_bert.checks.models import check_model, shrink


@pytest.fixture
def data(rng):
    ids = rng.integers(5, 64, (4, 10))
    positions = rng.random((4, 10)) < 0.3
    positions[0] = False
    positions[0, 0] = True                   # uneven counts between the halves
    return ids, positions


def test_the_whole_batch_equals_its_parts_added_up(model, data):
    ids, positions = data
    whole, parts = MiniBERTGradients(model), MiniBERTGradients(model)
    total = whole.accumulate_mlm(ids, ids, positions)
    sums = [parts.accumulate_mlm(ids[i:j], ids[i:j], positions[i:j]) for i, j in ((0, 1), (1, 4))]
    assert total[0] == pytest.approx(sum(s for s, _ in sums))
    assert total[1] == sum(n for _, n in sums) == positions.sum()
    assert np.allclose(whole.gradients.flat, parts.gradients.flat, rtol=1e-10, atol=1e-12)


def test_all_positions_and_masked_positions_alone_give_the_same_gradients(model, data):
    """The path through all logits, as one would write it first, against the short one."""
    ids, positions = data
    long, short = MiniBERTGradients(model), MiniBERTGradients(model)
    logits, cache = model.forward(ids)
    loss, dlogits = long.compute_mlm_loss_and_gradients(logits, ids, positions)
    long.backward_from_logits(dlogits, cache)
    loss_sum, count = short.accumulate_mlm(ids, ids, positions)
    assert loss == pytest.approx(loss_sum / count, rel=1e-12)
    assert mlm_cross_entropy(logits, ids, positions) == (pytest.approx(loss_sum), count)
    assert np.allclose(long.gradients.flat, short.gradients.flat / count, rtol=1e-9, atol=1e-12)


def test_float32_gives_the_same_gradients_on_both_paths(debug, data):
    ids, positions = data
    model = MiniBERT(debug)
    long, short = MiniBERTGradients(model), MiniBERTGradients(model)
    logits, cache = model.forward(ids)
    loss, dlogits = long.compute_mlm_loss_and_gradients(logits, ids, positions)
    long.backward_from_logits(dlogits, cache)
    loss_sum, count = short.accumulate_mlm(ids, ids, positions)
    assert loss == pytest.approx(loss_sum / count, rel=1e-6)
    assert np.abs(long.gradients.flat - short.gradients.flat / count).max() < 1e-6


def test_targets_are_read_at_masked_positions_alone(model, data):
    ids, positions = data
    grads = MiniBERTGradients(model)
    ignored = np.where(positions, ids, -100)
    assert grads.accumulate_mlm(ids, ignored, positions) == grads.accumulate_mlm(ids, ids, positions)


def test_tied_embeddings_get_both_gradients():
    config = shrink(load_preset("bert-tiny"), load_preset("debug"))
    model = MiniBERT(config, dtype=np.float64)
    assert np.shares_memory(model.params["mlm_head_W"], model.params["token_embeddings"])
    ids = np.array([[7, 8, 9]])
    grads = MiniBERTGradients(model)
    grads.accumulate_mlm(ids, ids, np.array([[False, True, False]]))
    embedding = np.abs(grads.gradients["token_embeddings"]).sum(axis=1)
    assert (embedding > 0).all()                            # the decoder scores every word
    assert np.array_equal(grads.gradients["mlm_head_W"], grads.gradients["token_embeddings"].T)


def test_zeroing_clears_all(model, data):
    ids, positions = data
    grads = MiniBERTGradients(model)
    grads.accumulate_mlm(ids, ids, positions)
    grads.zero_gradients()
    assert not grads.gradients.flat.any()


def test_gradient_check_of_single_parameters_of_a_model(model, data):
    ids, positions = data
    grads = MiniBERTGradients(model)
    loss_sum, _ = grads.accumulate_mlm(ids, ids, positions)
    scratch = MiniBERTGradients(model)
    for name in ("W_Q_0", "ln1_gamma_1", "mlm_head_b"):
        claimed = grads.gradients[name].copy()
        result = gradient_check(lambda: scratch.accumulate_mlm(ids, ids, positions)[0],
                                model.params[name], claimed, name=name)
        assert result.passed, result
        claimed.flat[3] *= 1.001
        assert not gradient_check(lambda: scratch.accumulate_mlm(ids, ids, positions)[0],
                                  model.params[name], claimed).passed
    assert loss_sum == scratch.accumulate_mlm(ids, ids, positions)[0]        # all elements were put back


def test_gradient_check_refuses_what_it_cannot_check():
    with pytest.raises(InputError, match="float64"):
        gradient_check(lambda: 0.0, np.zeros(3, np.float32), np.zeros(3, np.float32))
    with pytest.raises(InputError, match="shape"):
        gradient_check(lambda: 0.0, np.zeros(3), np.zeros(4))
    fixed = np.zeros(3)
    fixed.flags.writeable = False
    for x in ([1.0], fixed):
        with pytest.raises(InputError, match="written"):
            gradient_check(lambda: 0.0, x, np.zeros(3))


@pytest.mark.parametrize(("name", "config"), models_to_check().items())
def test_every_kind_of_model_passes_with_other_seeds(name, config):
    assert [result for result in check_model(name, config, seed=11) if not result.passed] == []


def test_losses_take_lists_and_refuse_integers(model):
    logits, _ = model.forward(np.full((1, 3), 7))
    positions = [[1, 0, 1]]
    assert mlm_cross_entropy(logits.tolist(), [[5, 5, 5]], positions)[1] == 2
    with pytest.raises(InputError, match="floating-point"):
        mlm_cross_entropy(logits.astype(int), [[5, 5, 5]], positions)


@pytest.mark.parametrize(("targets", "positions", "words"), [
    (np.full((1, 3), 64), np.ones((1, 3), bool), ["target_ids", "64"]),
    (np.full((1, 4), 5), np.ones((1, 3), bool), ["target_ids", "(1, 4)"]),
    (np.full((1, 3), 5.0), np.ones((1, 3), bool), ["target_ids", "whole numbers"]),
    (np.full((1, 3), 5), np.ones((1, 4), bool), ["mask_positions", "(1, 4)"]),
    (np.full((1, 3), 5), np.full((1, 3), 2), ["mask_positions", "zeros and ones"]),
])
def test_bad_targets_are_refused(model, targets, positions, words):
    ids = np.full((1, 3), 7)
    grads = MiniBERTGradients(model)
    logits, _ = model.forward(ids)
    for call in (lambda: grads.accumulate_mlm(ids, targets, positions),
                 lambda: grads.compute_mlm_loss_and_gradients(logits, targets, positions),
                 lambda: mlm_cross_entropy(logits, targets, positions)):
        with pytest.raises(InputError) as error:
            call()
        assert all(word in str(error.value) for word in words)


def test_a_loss_over_nothing_is_refused(model):
    ids = np.full((1, 3), 7)
    with pytest.raises(InputError, match="selects nothing"):
        MiniBERTGradients(model).compute_mlm_loss_and_gradients(model.forward(ids)[0], ids, np.zeros((1, 3), bool))


@pytest.mark.parametrize("block", ["post_ln", "pre_ln"])
def test_huge_weights_give_finite_gradients_or_an_error(block):
    config = ModelConfig(num_layers=2, num_heads=2, hidden_size=16, intermediate_size=32, vocab_size=30,
                         max_seq_length=8, block=block)
    model, rng = MiniBERT(config), np.random.default_rng(0)
    ids, mask = rng.integers(5, 30, (2, 8)), np.zeros((2, 8), bool)
    mask[:, 2] = mask[0, 5] = True
    before, names, refused = model.params.flat.copy(), list(model.params), 0
    for _ in range(120):
        model.params.flat[...] = before
        for name in rng.choice(names, rng.integers(1, 4), replace=False):
            weights = model.params[name]
            huge = (weights + 0.01 * rng.standard_normal(weights.shape)) * 10.0 ** rng.uniform(5, 39)
            weights[...] = np.clip(huge, -3e38, 3e38)
        gradients = MiniBERTGradients(model)
        try:
            loss, _ = gradients.accumulate_mlm(ids, ids, mask)
        except NumericalError:
            refused += 1
            continue
        assert np.isfinite(loss)
        assert np.isfinite(gradients.gradients.flat).all()
    assert 5 < refused < 115
