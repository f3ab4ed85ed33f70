"""Relative values are what their definition says, for all tokens and for some."""

import numpy as np

from mini_bert import MiniBERT, ModelConfig

SIZES = {"num_layers": 1, "num_heads": 2, "hidden_size": 8, "intermediate_size": 16, "vocab_size": 30,
         "max_seq_length": 9, "init_std": 0.5}


def test_the_context_is_the_sum_over_tokens_and_distances(rng):
    model = MiniBERT(ModelConfig(**SIZES, attention="relative_values(reach=2)"), dtype=np.float64)
    ids, mask = rng.integers(5, 30, (2, 7)), np.arange(7) < np.array([7, 4])[:, None]
    _, cache = model.encode(ids, mask)
    weights, V, R = cache["attention_weights_0"], cache["V_0"], model.params["relative_values_0"]
    expected = np.zeros_like(V)
    for i in range(7):
        for j in range(7):
            taken = V[:, :, j] + R[np.clip(j - i, -2, 2) + 2]
            expected[:, :, i] += weights[:, :, i, j, None] * taken
    np.testing.assert_allclose(cache["context_0"], expected)


def test_some_tokens_get_the_same_as_all(rng):
    model = MiniBERT(ModelConfig(**SIZES, attention="relative_values(reach=3)", score_terms="relative_keys(reach=2)"),
                     dtype=np.float64)
    ids, chosen = rng.integers(5, 30, (3, 9)), rng.random((3, 9)) < 0.4
    np.testing.assert_allclose(model.encode(ids, positions=chosen)[0], model.encode(ids)[0][chosen])
