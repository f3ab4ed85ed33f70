"""Values that each operation must give, computed by other means."""

import math

import numpy as np
import pytest

from mini_bert.core.ops.attention import attention_backward, attention_forward
from mini_bert.core.ops.blockwise_attention import (
    blockwise_attention_backward,
    blockwise_attention_forward,
    blockwise_attention_value,
)
from mini_bert.core.ops.cross_entropy import cross_entropy_backward, cross_entropy_forward
from mini_bert.core.ops.dropout import dropout_backward, dropout_forward
from mini_bert.core.ops.embedding import embedding_backward, embedding_forward, summed_rows
from mini_bert.core.ops.gelu import gelu_forward, normal_cdf
from mini_bert.core.ops.gelu_tanh import gelu_tanh_forward
from mini_bert.core.ops.layernorm import layernorm_forward
from mini_bert.core.ops.rmsnorm import rmsnorm_forward
from mini_bert.core.ops.silu import silu_forward
from mini_bert.core.ops.softmax import softmax_forward


def test_gelu_is_exact_to_the_rounding_error():
    x = np.concatenate([np.linspace(-12, 12, 20_001), [0.0, -0.0, 1e-300, -40, 40]])
    exact = np.array([v * 0.5 * math.erfc(-v / math.sqrt(2)) for v in x])
    assert np.abs(gelu_forward(x)[0] - exact).max() < 2e-15
    single = x.astype(np.float32)
    exact = np.array([v * 0.5 * math.erfc(-v / math.sqrt(2)) for v in single.astype(float)])
    assert (np.abs(gelu_forward(single)[0] - exact) / np.maximum(1, np.abs(single))).max() < 1.5e-7


def test_gelu_and_its_slope_hold_where_float32_ends():
    x = np.array([-3e38, -1e20, -1e4, 1e4, 1e20, 3e38], np.float32)
    y, slope = gelu_forward(x)
    assert np.array_equal(y, np.maximum(x, 0))
    assert np.array_equal(slope, x > 0)


def test_normal_cdf_is_the_error_function():
    x = np.linspace(-8, 8, 10_001)
    exact = np.array([0.5 * (1 + math.erf(v / math.sqrt(2))) for v in x])
    assert np.abs(normal_cdf(x)[0] - exact).max() < 1e-15
    single = x.astype(np.float32)
    exact = np.array([0.5 * (1 + math.erf(v / math.sqrt(2))) for v in single.astype(float)])
    assert np.abs(normal_cdf(single)[0] - exact).max() < 1.3e-7


def test_the_tanh_form_is_near_the_exact_one_but_not_equal():
    x = np.linspace(-5, 5, 1001)
    difference = np.abs(gelu_forward(x)[0] - gelu_tanh_forward(x)[0]).max()
    assert 1e-4 < difference < 1e-3


def test_layernorm_rows_have_mean_zero_and_variance_one(rng):
    y, _ = layernorm_forward(5 + 3 * rng.standard_normal((4, 64)), np.ones(64), np.zeros(64), 1e-12)
    assert np.allclose(y.mean(axis=1), 0, atol=1e-12)
    assert np.allclose(y.var(axis=1), 1)


def test_layernorm_of_a_constant_row_is_beta():
    y, _ = layernorm_forward(np.full((1, 4), 7.0), np.ones(4), np.arange(4.0), 1e-5)
    assert np.allclose(y, np.arange(4.0))


def test_softmax_survives_large_and_infinite_inputs():
    p, _ = softmax_forward(np.array([[1e4, 1e4, -np.inf], [-1e4, 0.0, 1e4]]))
    assert np.array_equal(p, [[0.5, 0.5, 0], [0, 0, 1]])


def test_softmax_does_not_see_a_common_shift(rng):
    x = rng.standard_normal((3, 7))
    assert np.allclose(softmax_forward(x)[0], softmax_forward(x + 100)[0], atol=1e-12)


def test_dropout_keeps_the_mean_and_the_rate():
    x = np.ones((1000, 1000), np.float32)
    y, (keep, scale) = dropout_forward(x, 0.1, np.random.default_rng(0))
    deviation = math.sqrt(0.1 * 0.9 / x.size)
    assert abs((~keep).mean() - 0.1) < 5 * deviation + 1e-5
    assert scale == pytest.approx(1 / 0.9, rel=1e-4)
    assert set(np.unique(y)) == {np.float32(0), np.float32(scale)}


def test_dropout_passes_gradients_where_it_passed_values(rng):
    x = rng.standard_normal((8, 8)) + 5
    y, cache = dropout_forward(x, 0.5, np.random.default_rng(0))
    assert np.array_equal(dropout_backward(np.ones_like(x), cache) > 0, y > 0)


@pytest.mark.parametrize("rate", [0.999999, 1 - 1e-12])
def test_dropout_at_the_highest_rates_still_divides(rate, rng):
    assert np.isfinite(dropout_forward(rng.standard_normal((50, 50)), rate, rng)[0]).all()


def test_embedding_gradients_of_equal_ids_add_up(rng):
    W, ids = rng.standard_normal((6, 3)), rng.integers(0, 6, 40)
    y, cache = embedding_forward(W, ids)
    assert np.array_equal(y, W[ids])
    dy = rng.standard_normal(y.shape)
    expected = np.zeros_like(W)
    np.add.at(expected, ids, dy)
    assert np.allclose(embedding_backward(dy, cache), expected)
    rows, sums = summed_rows(dy, ids)
    assert np.array_equal(rows, np.unique(ids))
    assert np.allclose(sums, expected[rows])


def test_attention_is_the_weighted_mean_of_the_formula(rng):
    Q, K, V = rng.standard_normal((3, 2, 2, 5, 4))
    mask = np.array([[True] * 5, [True, True, False, True, False]])
    context, cache = attention_forward(Q, K, V, mask)
    for b in range(2):
        for a in range(2):
            for t in range(5):
                scores = np.array([Q[b, a, t] @ K[b, a, s] / 2 for s in range(5)])
                weights = np.where(mask[b], np.exp(scores), 0)
                weights /= weights.sum()
                assert np.allclose(context[b, a, t], weights @ V[b, a])
    assert (cache.weights[1][..., [2, 4]] == 0).all()


def test_cross_entropy_is_minus_the_log_probability(rng):
    logits, targets = rng.standard_normal((5, 7)), rng.integers(0, 7, 5)
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    loss, _ = cross_entropy_forward(logits, targets)
    assert loss == pytest.approx(-np.log(probabilities[np.arange(5), targets]).sum())


def test_cross_entropy_does_not_overflow():
    loss, cache = cross_entropy_forward(np.array([[1000.0, 0.0]], np.float32), np.array([1]))
    assert loss == 1000
    assert np.array_equal(cross_entropy_backward(1.0, cache), [[1, -1]])


def test_cross_entropy_ignores_what_is_not_selected(rng):
    logits, targets = rng.standard_normal((4, 3)), np.array([0, 1, 2, 0])
    selected = np.array([True, False, True, False])
    loss, cache = cross_entropy_forward(logits, targets, selected)
    assert loss == pytest.approx(cross_entropy_forward(logits[selected], targets[selected])[0])
    dlogits = cross_entropy_backward(1.0, cache)
    assert (dlogits[~selected] == 0).all()
    assert np.allclose(dlogits.sum(axis=1), 0)


def test_a_row_without_a_visible_entry_gets_no_weight():
    p, _ = softmax_forward(np.array([[-np.inf, -np.inf], [0.0, -np.inf]]))
    assert np.array_equal(p, [[0, 0], [1, 0]])


def test_rms_normalised_rows_have_mean_square_one(rng):
    y, _ = rmsnorm_forward(5 + 3 * rng.standard_normal((4, 64)), np.ones(64), 1e-12)
    assert np.allclose((y**2).mean(axis=1), 1)


def test_silu_is_the_input_times_its_sigmoid_even_far_from_zero():
    x = np.array([-800.0, -3.0, 0.0, 3.0, 800.0])
    assert np.allclose(silu_forward(x)[0], [0, -3 / (1 + math.exp(3)), 0, 3 / (1 + math.exp(-3)), 800])


def test_attention_over_long_sequences_keeps_no_weights_and_changes_no_result():
    T = 1030
    Q, K, V, dcontext = np.random.default_rng(0).standard_normal((4, 1, 1, T, 4))
    context, cache = blockwise_attention_forward(Q, K, V)
    kept = [value for _, attend in cache.blocks for value in attend if isinstance(value, np.ndarray)]
    assert max(value.size for value in kept) == K.size                 # Q, K and V alone
    expected, whole = attention_forward(Q, K, V)
    assert np.allclose(context, expected, rtol=1e-12, atol=1e-14)
    assert np.allclose(blockwise_attention_value(Q, K, V), expected, rtol=1e-12, atol=1e-14)
    for d, of_whole in zip(blockwise_attention_backward(dcontext, cache), attention_backward(dcontext, whole),
                           strict=True):
        assert np.allclose(d, of_whole, rtol=1e-10, atol=1e-13)
