"""The geometry of representations on data of known geometry."""

import json
from math import log

import numpy as np
import pytest

from mini_bert import InputError, MiniBERT
from mini_bert.evaluation.representations.geometry import (
    analyze_representation_geometry,
    compute_anisotropy,
    compute_attention_entropy,
    compute_effective_dimensionality,
    compute_effective_rank,
    compute_layer_similarity,
    compute_representation_geometry,
    compute_token_diversity,
    layer_states,
)


def rotation(n: int, rng: np.random.Generator) -> np.ndarray:
    return np.linalg.qr(rng.standard_normal((n, n)))[0]


# -------------------------------------------------------------------- diversity

def test_diversity_is_zero_for_copies_and_one_for_orthogonal_vectors():
    assert compute_token_diversity(np.tile([1.0, 2.0], (5, 1))) == pytest.approx(0)
    assert compute_token_diversity(np.eye(4)) == pytest.approx(1)
    assert compute_token_diversity(np.array([[1.0, 0], [-3, 0]])) == pytest.approx(2)


def test_diversity_is_within_sequences_without_padding(rng):
    states = rng.standard_normal((3, 5, 4))
    states[0] = states[0, 0]                          # copies
    states[1, :2] = np.eye(4)[:2]                     # orthogonal, then padding
    mask = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 0, 0, 0, 0]])
    states[1, 2:] = 1e6
    assert compute_token_diversity(states, mask) == pytest.approx((0 + 1) / 2)     # the third sequence has no pair
    pairs = [x @ y / np.linalg.norm(x) / np.linalg.norm(y) for i, x in enumerate(states[2]) for y in states[2][:i]]
    assert compute_token_diversity(states[2]) == pytest.approx(1 - np.mean(pairs))
    with pytest.raises(InputError, match="a sequence with at least two"):
        compute_token_diversity(states[2:], mask[2:])


# -------------------------------------------------------------------- layer similarity

def test_a_rotated_scaled_and_shifted_copy_is_the_same_layer(rng):
    X = rng.standard_normal((60, 8)) * np.arange(1, 9)
    for debiased in (True, False):
        found = compute_layer_similarity([X, 3 * X @ rotation(8, rng) + 5], debiased=debiased)
        np.testing.assert_allclose(found, 1, atol=1e-10)


def test_unrelated_layers_get_zero_unless_the_bias_is_left_in(rng):
    N, H = 200, 50
    noise = [compute_layer_similarity(list(rng.standard_normal((2, N, H))))[0, 1] for _ in range(20)]
    assert abs(np.mean(noise)) < 0.01
    plain = compute_layer_similarity(list(rng.standard_normal((2, N, H))), debiased=False)[0, 1]
    assert plain == pytest.approx(H / N / (1 + H / N), abs=0.03)


def test_the_debiased_estimate_equals_the_kernel_formula(rng):
    """Song et al. 2012, equation 5, on matrices of tokens by tokens."""
    X, Y = rng.standard_normal((12, 5)), rng.standard_normal((12, 3))
    Y[:, 0] += X[:, 0]

    def hsic(K, L):
        n = len(K)
        K, L = K - np.diag(K.diagonal()), L - np.diag(L.diagonal())
        return (np.trace(K @ L) + K.sum() * L.sum() / (n - 1) / (n - 2) - 2 / (n - 2) * (K @ L).sum()) / (n * (n - 3))

    K, L = X @ X.T, Y @ Y.T
    expected = hsic(K, L) / np.sqrt(hsic(K, K) * hsic(L, L))
    found = compute_layer_similarity([X, Y])
    assert found[0, 1] == pytest.approx(expected)
    np.testing.assert_array_equal(found, found.T)
    plain = compute_layer_similarity([X, Y], debiased=False)[0, 1]
    centre = np.eye(12) - 1 / 12
    Kc, Lc = centre @ K @ centre, centre @ L @ centre
    assert plain == pytest.approx(np.vdot(Kc, Lc) / np.linalg.norm(Kc) / np.linalg.norm(Lc))


def test_a_constant_layer_has_similarity_zero(rng):
    found = compute_layer_similarity([np.full((30, 4), 0.1), rng.standard_normal((30, 6))])
    np.testing.assert_array_equal(found, np.eye(2))


def test_layers_of_different_lengths_are_refused(rng):
    for layers, words in (([], "at least one"), ([np.ones((5, 2)), np.ones((6, 2))], "same number"),
                          ([np.ones((3, 2))], "at least 4"), ([np.ones(5)], "floating-point numbers of shape")):
        with pytest.raises(InputError, match=words):
            compute_layer_similarity(layers)


# -------------------------------------------------------------------- attention

def test_uniform_attention_has_entropy_ln_n_and_a_single_key_zero():
    weights = np.zeros((1, 2, 5, 5))
    weights[0, 0] = 1 / 5
    weights[0, 1] = np.eye(5)
    np.testing.assert_allclose(compute_attention_entropy(weights), [log(5), 0], atol=1e-12)
    np.testing.assert_allclose(compute_attention_entropy(weights, normalised=True), [1, 0], atol=1e-12)


def test_padding_is_neither_query_nor_key():
    mask = np.array([[1, 1, 1, 0], [1, 1, 0, 0], [1, 0, 0, 0]])
    weights = np.tile((mask / mask.sum(axis=1, keepdims=True))[:, None, None, :], (1, 1, 4, 1)).astype(np.float32)
    weights[:, :, 3] = [1, 0, 0, 0]                   # queries at padding are ignored
    assert compute_attention_entropy(weights, mask)[0] == pytest.approx((3 * log(3) + 2 * log(2) + 0) / 6)
    assert compute_attention_entropy(weights, mask, normalised=True)[0] == pytest.approx(1)
    first = np.zeros((3, 4))
    first[0, 0] = first[1, 0] = 1
    assert compute_attention_entropy(weights, mask, queries=first)[0] == pytest.approx((log(3) + log(2)) / 2)


def test_invalid_attention_weights_are_refused():
    for weights, mask, words in ((np.ones((1, 1, 3, 3)), None, "do not sum to 1"),
                                 (np.full((1, 1, 2, 2), 0.5), [[1, 0]], "do not sum to 1"),
                                 (np.ones((3, 3)), None, "shape"), (np.ones((1, 1, 2, 3)), None, "shape"),
                                 (np.full((1, 1, 2, 2), 0.5), [[0, 0]], "no queries"),
                                 (np.full((1, 1, 2, 2), 0.5), [[1, 1, 1]], "attention_mask has the shape")):
        with pytest.raises(InputError, match=words):
            compute_attention_entropy(weights, mask)


# -------------------------------------------------------------------- dimensions

def test_the_participation_ratio_counts_directions(rng):
    d = 6
    data = np.zeros((2 * d, 10))                      # six axes, both directions
    data[:d, :d], data[d:, :d] = np.eye(d), -np.eye(d)
    assert compute_effective_dimensionality(data @ rotation(10, rng) + 7) == pytest.approx(d)
    assert compute_effective_dimensionality(np.outer(rng.standard_normal(50), rng.standard_normal(10))) \
        == pytest.approx(1)
    assert compute_effective_dimensionality(np.full((5, 3), 0.1)) == 0
    assert compute_effective_dimensionality(rng.standard_normal((20_000, 8))) == pytest.approx(8, rel=0.01)
    stretched = data * np.sqrt([4, 1, 1, 1, 1, 1, 0, 0, 0, 0])
    assert compute_effective_dimensionality(stretched) == pytest.approx(9**2 / (16 + 5))


def test_the_effective_rank_counts_singular_values(rng):
    assert compute_effective_rank(np.eye(7)) == pytest.approx(7)
    assert compute_effective_rank(np.outer(np.ones(4), np.arange(1.0, 9))) == pytest.approx(1)
    assert compute_effective_rank(np.zeros((3, 3))) == 0
    p = np.array([0.5, 0.25, 0.25])
    assert compute_effective_rank(rotation(3, rng) * p @ rotation(3, rng)) == pytest.approx(2**1.5)
    for wrong in (np.ones(3), np.full((2, 2), np.nan), np.ones((0, 3))):
        with pytest.raises(InputError, match="weight_matrix"):
            compute_effective_rank(wrong)


def test_anisotropy_of_a_cone_and_of_all_directions(rng):
    everywhere = compute_anisotropy(rng.standard_normal((4000, 10)))
    assert everywhere.mean_cosine == pytest.approx(0, abs=0.01)
    assert everywhere.top_component == pytest.approx(0.1, abs=0.02)
    both_ways = np.array([[1.0, 0], [-1, 0]]).repeat(3, axis=0)
    assert compute_anisotropy(both_ways).mean_cosine == pytest.approx(-1 / 5)      # 6 of 15 pairs equal, 9 opposite
    assert compute_anisotropy(both_ways).top_component == pytest.approx(1)
    cone = compute_anisotropy(rng.standard_normal((500, 10)) + 100)
    assert cone.mean_cosine > 0.99
    assert cone.top_component < 0.2                   # the axis of the cone is the mean, not variance


# -------------------------------------------------------------------- all together

def test_the_geometry_collects_the_measures_of_the_selected_tokens(rng):
    states = rng.standard_normal((4, 6, 5)).astype(np.float32)
    mask = rng.random((4, 6)) < 0.7
    states[~mask] = 1e6
    found = compute_representation_geometry(states, mask)
    rows = states[mask].astype(np.float64)
    centred = rows - rows.mean(axis=0)
    assert (found.tokens, found.size) == (len(rows), 5)
    assert found.token_diversity == pytest.approx(compute_token_diversity(states, mask))
    assert (found.mean_cosine, found.top_component) == pytest.approx(compute_anisotropy(rows))
    assert found.effective_dimensionality == pytest.approx(compute_effective_dimensionality(rows))
    assert found.effective_rank == pytest.approx(compute_effective_rank(centred))
    assert found.mean_norm == pytest.approx(np.linalg.norm(rows, axis=1).mean())
    assert found.centre_norm == pytest.approx(np.linalg.norm(rows.mean(axis=0)))
    assert analyze_representation_geometry(states, mask) == found
    assert json.loads(json.dumps(found.to_dict()))["tokens"] == len(rows)


@pytest.mark.parametrize(("states", "mask", "words"), [
    (np.ones((3, 4)), np.zeros(3), "at least two tokens, not 0"), (np.ones((1, 4)), None, "not 1"),
    (np.ones((2, 3, 4)), np.ones((2, 4)), "mask has the shape"), (np.ones((3, 4), int), None, "floating-point")])
def test_representations_of_the_wrong_shape_are_refused(states, mask, words):
    with pytest.raises(InputError, match=words):
        compute_representation_geometry(states, mask)


def test_layer_states_are_the_hidden_states_of_the_pass(debug, rng):
    model = MiniBERT(debug)
    hidden, cache = model.encode(rng.integers(5, 20, (2, 6)))
    found = layer_states(cache)
    assert list(found) == ["embeddings", *(f"hidden_{i}" for i in range(debug.num_layers)), "final_hidden"]
    assert all(states.shape == hidden.shape for states in found.values())
    np.testing.assert_array_equal(found["final_hidden"], hidden)
