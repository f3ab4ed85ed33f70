"""MathematicalAnalyzer on inputs with known results."""

import numpy as np
import pytest
from hand_built_models import small

from mini_bert import InputError, MathematicalAnalyzer, load


def test_attention_step_by_step():
    Q, K = np.array([[2.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    V = np.array([[10.0, 0.0], [0.0, 10.0]])
    found = MathematicalAnalyzer().analyze_attention_computation(Q, K, V)
    np.testing.assert_allclose(found.products, [[2, 0]])
    np.testing.assert_allclose(found.scores, [[np.sqrt(2), 0]])
    share = np.exp(np.sqrt(2)) / (np.exp(np.sqrt(2)) + 1)
    np.testing.assert_allclose(found.attention_weights, [[share, 1 - share]])
    np.testing.assert_allclose(found.context, [[10 * share, 10 - 10 * share]])
    np.testing.assert_allclose(found.entropy, [-share * np.log(share) - (1 - share) * np.log(1 - share)])
    assert found.strongest.tolist() == [0]
    assert found.to_dict()["scale"] == pytest.approx(1 / np.sqrt(2))


def test_attention_equals_the_models_own():
    model = small()
    x = np.random.default_rng(0).standard_normal((2, 5, 16))
    mask = np.arange(5) < np.array([5, 3])[:, None]
    _, cache = model._multi_head_attention(x, layer=1, attention_mask=mask)
    found = MathematicalAnalyzer(model).analyze_attention_computation(cache["Q"], cache["K"], cache["V"], mask)
    for name in ("scores", "attention_weights", "context"):
        np.testing.assert_array_equal(getattr(found, name), cache[name])
    three = MathematicalAnalyzer(model).analyze_attention_computation(cache["Q"][0], cache["K"][0], cache["V"][0])
    assert three.context.shape == (2, 5, 8)
    np.testing.assert_allclose(three.context, found.context[0])


def test_layernorm_before_and_after():
    x = np.array([[1.0, 3.0], [10.0, 10.0]])
    found = MathematicalAnalyzer().analyze_layer_norm_statistics(x, np.array([2.0, 2.0]), np.array([5.0, 5.0]), eps=0.5)
    np.testing.assert_allclose(found.before.row_mean, [2, 10])
    np.testing.assert_allclose(found.before.row_deviation, [1, 0])
    np.testing.assert_allclose(found.shrunk_by, [np.sqrt(1.5), np.sqrt(0.5)])
    np.testing.assert_allclose(found.normalised.row_deviation, [1 / np.sqrt(1.5), 0])
    np.testing.assert_allclose(found.after.row_mean, [5, 5])
    np.testing.assert_allclose(found.after.row_deviation, [2 / np.sqrt(1.5), 0])
    assert found.to_dict()["before"]["largest"] == 10


def test_dead_and_always_on_units():
    model = small(num_layers=1)
    p = model.params
    p["W1_0"][...] = 0
    p["b1_0"][...] = -1                   # off for every token
    p["b1_0"][3] = 1                      # on for every token
    p["W1_0"][0, 5], p["b1_0"][5] = 1, 0  # on where the first feature is positive
    x = np.zeros((2, 2, 16))
    x[..., 0] = [[1, -1], [-1, -2]]
    found = MathematicalAnalyzer(model).analyze_ffn_activation_patterns(x, 0)
    assert found.tokens == 4
    assert found.always_on == [3]
    assert found.dead == [i for i in range(24) if i not in (3, 5)]
    assert found.share_on[5] == 1 / 4
    assert found.mean_activation[[3, 5]].tolist() == [1, 1 / 4]
    assert found.sparsity == pytest.approx(1 - 5 / 96)
    assert found.to_dict()["always_on"] == [3]


def test_bad_input_is_refused():
    analyzer, x = MathematicalAnalyzer(small()), np.zeros((3, 16))
    with pytest.raises(InputError, match="Q, K and V"):
        analyzer.analyze_attention_computation(x, x, np.zeros((2, 16)))
    with pytest.raises(InputError, match="gamma"):
        analyzer.analyze_layer_norm_statistics(x, np.ones(3), np.ones(16))
    with pytest.raises(InputError, match="no layer 2"):
        analyzer.analyze_ffn_activation_patterns(x, 2)
    with pytest.raises(InputError, match="must be"):
        analyzer.analyze_ffn_activation_patterns(np.zeros((3, 5)), 0)


def test_without_a_model_the_feed_forward_network_is_that_of_the_shipped_model():
    x = np.random.default_rng(0).standard_normal((3, 192)).astype(np.float32)
    assert MathematicalAnalyzer().analyze_ffn_activation_patterns(x, 0).to_dict() == \
        MathematicalAnalyzer(load("mini")).analyze_ffn_activation_patterns(x, 0).to_dict()
