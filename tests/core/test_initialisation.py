"""How a model begins."""

import numpy as np
import pytest

from mini_bert import ConfigError, MiniBERT, ModelConfig
from mini_bert.training.inits.local import attend_locally

LOCAL = ModelConfig(num_layers=2, num_heads=4, hidden_size=96, intermediate_size=64, vocab_size=300,
                    max_seq_length=40)


def local(config: ModelConfig = LOCAL, **options) -> MiniBERT:
    model = MiniBERT(config, **options)
    attend_locally(config, model.params)
    return model


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_local_heads_look_at_their_neighbour(dtype, rng):
    model = local(dtype=dtype, seed=3)
    _, cache = model.encode(rng.integers(5, 300, (6, 40)))
    weights = cache["attention_weights_0"]                                # (B, A, T, T)
    for head, offset in enumerate((-1, 1, -2, 2)):
        inside = np.arange(max(0, -offset), 40 - max(0, offset))
        assert weights[:, head, inside, inside + offset].mean() > 0.3
        assert (weights[:, head, inside].argmax(axis=-1) == inside + offset).mean() > 0.9


def test_normal_heads_look_everywhere(rng):
    model = MiniBERT(LOCAL, seed=3)
    _, cache = model.encode(rng.integers(5, 300, (2, 40)))
    np.testing.assert_allclose(cache["attention_weights_0"], 1 / 40, rtol=0.05)


@pytest.mark.parametrize("head", ["plain", "bert"])
def test_local_begins_near_the_loss_of_guessing_evenly(head, rng):
    model = local(ModelConfig(**{**LOCAL.to_dict(), "mlm_head": head}))
    logits, _ = model.forward(rng.integers(5, 300, (4, 40)))
    log_total = np.log(np.exp(logits).sum(axis=-1))
    assert abs((log_total - logits[..., 7]).mean() - np.log(300)) < 0.1


def test_seeds_differ_and_repeat():
    first, again, other = (local(seed=seed).params.flat for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_local_without_positions_is_refused():
    with pytest.raises(ConfigError, match="position_embeddings: learned"):
        local(ModelConfig(**{**LOCAL.to_dict(), "position_embeddings": "none"}))
